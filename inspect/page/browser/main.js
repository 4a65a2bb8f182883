// The state of the page. render() shows everything from it.

const page = JSON.parse(place("data").textContent);

const state = {
  step: 0, // index of the training step
  moment: 0, // index in the step's story: its operations forward, then backward
  view: "story", // or "attention", "health"
  places: new Map(), // selected index of the whole array, by axis name
  open: new Set(), // paths of unfolded layers
  attention: { which: 0, head: 0 }, // which: index among the operations with heads
};

const VIEWS = ["story", "attention", "health"];
let shownStep = null; // the tree's step

function currentStep() {
  return prepareStep(page.steps[state.step]);
}

function currentMoment() {
  return currentStep().moments[state.moment];
}

/** Changes the state, limited to its bounds, and renders it. */
function go(change) {
  Object.assign(state, change);
  state.step = Math.max(0, Math.min(page.steps.length - 1, state.step));
  const count = currentStep().moments.length;
  state.moment = Math.max(0, Math.min(count - 1, state.moment));
  if (state.view === "attention" && !attentionNodes(currentStep()).length) state.view = "story";
  render();
  const moment = currentMoment();
  if (change.moment !== undefined && moment) announce(describeMoment(currentStep(), moment));
}

function render() {
  const step = currentStep();
  if (step !== shownStep) {
    renderTree(step);
    shownStep = step;
  }
  tooltip([], null);
  renderTop(step);
  renderTrouble(step);
  if (state.view === "story") {
    renderPlayer();
    lightTree(step, currentMoment());
    renderStage(step, currentMoment());
  } else {
    if (timer) pause();
    if (state.view === "attention") renderAttention(step);
    else renderHealth(step, page.steps.map(prepareStep));
  }
}

/** Renders the summary, the tabs and the slider of training steps. */
function renderTop(step) {
  const loss = lossOf(step);
  const swept = step.moments.length - step.operations.length;
  fill(
    place("summary"),
    element("span", { class: "forward", text: `→ forward through ${counted(step.operations.length, "operation")}` }),
    loss && loss.number !== null ? element("strong", { text: `${loss.name} = ${short(loss.number)}` }) : null,
    swept ? element("span", { class: "backward", text: `← backward: ${backwardInShort(step)}` }) : null,
  );
  for (const view of VIEWS) {
    const tab = place(`tab-${view}`);
    tab.setAttribute("aria-selected", String(view === state.view));
    tab.tabIndex = view === state.view ? 0 : -1;
    place(view).hidden = view !== state.view;
  }
  place("tab-attention").hidden = !attentionNodes(step).length;
  const wrong = findingsOf(step).filter((finding) => finding.wrong).length;
  place("tab-health").textContent = wrong ? `Health (${wrong})` : "Health";
  place("steps").hidden = page.steps.length < 2;
  place("step").max = page.steps.length - 1;
  place("step").value = state.step;
  place("step").setAttribute("aria-valuetext", step.label);
  place("step-count").textContent = `step ${state.step + 1} of ${page.steps.length}`;
  place("step-label").textContent = step.label;
}

function backwardInShort(step) {
  return step.stoppedAt ? `stopped at ${step.stoppedAt.label}` : "gradients of the loss";
}

/** Arrow keys move between tabs, as screen readers announce. */
function startTabs() {
  for (const view of VIEWS) {
    const tab = place(`tab-${view}`);
    tab.addEventListener("click", () => go({ view }));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const shown = VIEWS.filter((other) => !place(`tab-${other}`).hidden);
      const next = shown[(shown.indexOf(view) + by + shown.length) % shown.length];
      go({ view: next });
      place(`tab-${next}`).focus();
    });
  }
}

// ---- light and dark ------------------------------------------------------------------------------------------------

const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : prefersDark.matches;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  redrawHeatmaps();
}

function startTheme() {
  place("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  prefersDark.addEventListener("change", () => redrawHeatmaps());
  // Prints in light colors and at a higher resolution.
  let before;
  window.addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
    redrawHeatmaps(4);
  });
  window.addEventListener("afterprint", () => {
    if (before) document.documentElement.dataset.theme = before;
    else delete document.documentElement.dataset.theme;
    redrawHeatmaps();
  });
}

function startPage() {
  fill(place("left-out"), ...page.left_out.map((text) => element("p", { text })));
  place("left-out").hidden = page.left_out.length === 0;
  place("step").addEventListener("input", (event) => go({ step: Number(event.target.value) }));
  startTheme();
  startTabs();
  startPlayer();
  startAttention();
  state.step = firstWithTrouble();
  const step = currentStep();
  state.open = openAtFirst(step);
  render();
  if (nodeOfTrouble(step)) goToTrouble(step);
}

startPage();
