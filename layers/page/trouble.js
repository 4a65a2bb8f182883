// What went wrong, where a step was saved because of that: a banner above the story that leads there.

const dismissed = new Set(); // the steps whose banner is wanted no more

/** The number of the step that the page opens at. */
function firstWithTrouble() {
  return Math.max(
    0,
    page.steps.findIndex((step) => step.opened_at),
  );
}

/** Goes to where it went wrong: an operation's moment, or a parameter or constant in large. */
function goToTrouble(step) {
  const { node: number, backward } = step.opened_at;
  const node = step.nodes[number];
  const moment = (backward && node.backwardMoment) || node.forwardMoment;
  go(moment ? { view: "story", moment: moment.number } : { view: "story" });
  if (!moment) inspect(node);
}

function renderTrouble(step) {
  const box = place("trouble");
  box.hidden = !step.opened_at || dismissed.has(step);
  if (box.hidden) return;
  fill(
    box,
    element("p", { text: step.opened_at.text }),
    element("button", { text: "Show where", onclick: () => goToTrouble(step) }),
    element("button", {
      class: "close",
      "aria-label": "Dismiss",
      text: "×",
      onclick: () => {
        dismissed.add(step);
        render();
      },
    }),
  );
}
