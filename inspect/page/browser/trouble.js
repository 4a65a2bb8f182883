// What went wrong, where a step was saved because of that: a banner above the story that leads there.

const dismissed = new Set(); // the steps whose banner is wanted no more

/** The number of the step that the page opens at. */
function firstWithTrouble() {
  return Math.max(
    0,
    page.steps.findIndex((step) => step.opened_at),
  );
}

/** The value where it went wrong; none where nothing did, or not on the tape. */
function nodeOfTrouble(step) {
  return step.nodes[step.opened_at?.node];
}

/** Goes to where it went wrong: an operation's moment, or a parameter or constant in large. */
function goToTrouble(step) {
  const node = nodeOfTrouble(step);
  const moment = (step.opened_at.backward && node.backwardMoment) || node.forwardMoment;
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
    nodeOfTrouble(step) && element("button", { text: "Show where", onclick: () => goToTrouble(step) }),
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
