// A banner above the story for a step saved because of an error, with a link to its position.

const dismissed = new Set(); // steps with a closed banner

/** The index of the page's initial step. */
function firstWithTrouble() {
  return Math.max(
    0,
    page.steps.findIndex((step) => step.opened_at),
  );
}

/** The node with the error; undefined if there is none or it is not on the tape. */
function nodeOfTrouble(step) {
  return step.nodes[step.opened_at?.node];
}

/** Shows the node with the error: an operation's moment, or a parameter or constant in the inspector. */
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
