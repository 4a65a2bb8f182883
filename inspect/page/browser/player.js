// The player above the story: play and pause, next and previous, the slider, and their keys.

const SECONDS_A_MOMENT = 1.6;
let timer = null;

function startPlayer() {
  place("first").addEventListener("click", () => go({ moment: 0 }));
  place("back").addEventListener("click", () => go({ moment: state.moment - 1 }));
  place("play").addEventListener("click", togglePlay);
  place("on").addEventListener("click", () => go({ moment: state.moment + 1 }));
  place("last").addEventListener("click", () => go({ moment: Infinity }));
  place("moment").addEventListener("input", (event) => go({ moment: Number(event.target.value) }));
  place("speed").addEventListener("change", () => {
    if (timer) restart();
  });
  document.addEventListener("keydown", playerKey);
}

/** Space plays and pauses, arrows step, except in controls with their own use of these keys. */
function playerKey(event) {
  const control = event.target.closest("button, select, input, summary, a, dialog, [role=tab]");
  if (state.view !== "story" || event.ctrlKey || event.altKey || event.metaKey) return;
  const keys = {
    " ": togglePlay,
    ArrowRight: () => go({ moment: state.moment + 1 }),
    ArrowLeft: () => go({ moment: state.moment - 1 }),
    Home: () => go({ moment: 0 }),
    End: () => go({ moment: Infinity }),
  };
  const own = control && !(event.key === " " && control.matches("input[type=range]"));
  if (!keys[event.key] || own) return;
  event.preventDefault();
  keys[event.key]();
}

function togglePlay() {
  if (timer) return pause();
  if (state.moment >= currentStep().moments.length - 1) go({ moment: 0 });
  restart();
  return renderPlayer();
}

function pause() {
  clearInterval(timer);
  timer = null;
  renderPlayer();
}

function restart() {
  clearInterval(timer);
  timer = setInterval(
    () => {
      go({ moment: state.moment + 1 });
      if (state.moment >= currentStep().moments.length - 1) pause();
    },
    (1000 * SECONDS_A_MOMENT) / Number(place("speed").value),
  );
}

function renderPlayer() {
  const step = currentStep();
  const moment = currentMoment();
  const slider = place("moment");
  const count = step.moments.length;
  slider.max = Math.max(0, count - 1);
  slider.value = state.moment;
  const [forward, backward] = slider.parentNode.querySelectorAll(".halves span");
  forward.style.flexBasis = `${(100 * step.operations.length) / Math.max(1, count)}%`;
  backward.hidden = count === step.operations.length;
  const half = moment?.backward ? "backward" : "forward";
  const text = moment ? `${half}: ${moment.node.operation} ${moment.node.label}, ${state.moment + 1} of ${count}` : "";
  slider.setAttribute("aria-valuetext", text);
  place("position").textContent = `${count ? state.moment + 1 : 0} / ${count}`;
  place("play").textContent = timer ? "❚❚ Pause" : "▶ Play";
  for (const id of ["first", "back"]) place(id).disabled = state.moment === 0;
  for (const id of ["on", "last"]) place(id).disabled = state.moment >= count - 1;
}
