// The health view: findings, the loss over several steps, gradients along the depth, and a table of parameters.

function renderHealth(step, steps) {
  const findings = findingsOf(step);
  const swept = step.loss < 0 ? "there was no backward pass" : "every parameter has a gradient";
  const words = findings.length
    ? findings
    : [{ nodes: [], text: `No problems found: all numbers are finite, and ${swept}.` }];
  fill(
    place("health"),
    element("h2", { text: "Findings" }),
    element("ul", { class: "findings" }, ...words.map(findingLine)),
    ...lossCurve(steps),
    ...depthCurve(step),
    element("h2", { text: "Parameters" }),
    parameterTable(step),
  );
}

function findingLine({ text, nodes, wrong }) {
  const look = (node) =>
    element("button", {
      class: "link",
      text: nodes.length > 1 ? node.name || node.label : "show",
      onclick: () => inspect(node),
    });
  return element("li", { class: wrong ? "finding wrong" : "finding" }, `${text} `, ...nodes.map(look));
}

function parameterTable(step) {
  const parameters = parametersOf(step);
  const rows = parameters.map((node) => {
    const remarks = findingsAbout(step, [node]);
    const ratio = ratioOf(node);
    return [
      element("button", { class: "link", text: node.name || node.label, onclick: () => inspect(node) }),
      formatShape(node.shape),
      normCell(node.value),
      normCell(node.gradient),
      ratio === null ? "" : element("div", { class: "ratio" }, short(ratio, 2), ratioBar(ratio)),
      { text: inShort(step, node), class: remarks.some((finding) => finding.wrong) ? "wrong" : null },
    ];
  });
  const heads = ["parameter", "shape", "|value|", "|gradient|", "|gradient| / |value|", "remark"];
  return element(
    "div",
    { class: "scroll", tabindex: 0 },
    table("Norms of each parameter and of its gradient; the bars are logarithmic", heads, rows),
  );
}

function normCell(array) {
  if (!array) return "none";
  return wrongNumbers(array) ? { text: "not finite", class: "wrong" } : short(normOf(array), 3);
}

/** The gradient's norm divided by the value's; null if either is missing or not finite, or the value is 0. */
function ratioOf({ value, gradient }) {
  const known = value && gradient && wrongNumbers(value) + wrongNumbers(gradient) === 0 && normOf(value) > 0;
  return known ? normOf(gradient) / normOf(value) : null;
}

function inShort(step, node) {
  if (!node.reached) return whyNotReached(step, node);
  if (wrongNumbers(node.value) || wrongNumbers(node.gradient)) return "NaN or infinity";
  if (!node.gradient) return "gradient not needed";
  if (vanishes(step, node))
    return softmaxOfKeys(node) ? "0: softmax does not depend on a bias of the keys" : "nearly 0";
  return "";
}

/** A logarithmic bar from 1e-6 to 1e2. */
function ratioBar(ratio) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  const share = ratio > 0 && ratio < Infinity ? (Math.log10(ratio) + 6) / 8 : 0;
  bar.style.width = `${Math.max(0, Math.min(1, share)) * 6}em`;
  return bar;
}

function depthCurve(step) {
  const points = step.operations
    .filter((node) => node.gradient && normOf(node.gradient) > 0)
    .map((node) => ({
      x: node.forwardMoment.number + 1,
      y: typicalSize(node.gradient),
      text: [node.layer, node.label].filter(Boolean).join(": "),
      node,
    }));
  if (points.length < 2) return [];
  const choose = ({ node }) => go({ view: "story", moment: node.backwardMoment?.number ?? node.forwardMoment.number });
  return [
    element("h2", { text: "Gradients through the network" }),
    element("p", {
      class: "caption",
      text:
        "The typical size (root mean square) of the gradient of each operation's result. The backward " +
        "pass goes from right to left: gradients vanish if the curve falls to the left, and explode if it rises.",
    }),
    curve("Typical size of the gradient by operation", points, {
      x: "operation",
      y: "size",
      logarithmic: true,
      choose,
    }),
  ];
}

function lossCurve(steps) {
  const points = steps
    .map((step, i) => ({ x: i, y: lossOf(step)?.number, text: step.label }))
    .filter(({ y }) => Number.isFinite(y));
  // No curve for steps of different models, such as two tutorials.
  const operations = new Set(steps.map((step) => step.operations.map((node) => node.operation).join()));
  if (points.length < 2 || operations.size > 1) return [];
  const choose = ({ x }) => go({ step: x });
  return [
    element("h2", { text: "The loss over the steps" }),
    curve("The loss by step", points, { x: "step", y: "loss", chosen: state.step, choose }),
  ];
}

/**
 * An SVG line through points {x, y, text}. Options: x and y (axis titles), logarithmic, chosen (an x),
 * choose(point).
 */
function curve(title, points, { x: xName, y: yName, logarithmic = false, chosen, choose }) {
  const size = { width: 760, height: 240, left: 64, right: 16, top: 14, bottom: 38 };
  const scale = (y) => (logarithmic ? Math.log10(y) : y);
  const ticks = ticksOf(
    points.map(({ y }) => scale(y)),
    logarithmic,
  );
  const [low, high] = [ticks[0], ticks.at(-1)];
  const [from, to] = [points[0].x, points.at(-1).x];
  const px = (x) => size.left + ((x - from) / (to - from || 1)) * (size.width - size.left - size.right);
  const py = (y) =>
    size.height - size.bottom - ((y - low) / (high - low || 1)) * (size.height - size.top - size.bottom);
  const drawing = svg("svg", {
    class: "curve",
    viewBox: `0 0 ${size.width} ${size.height}`,
    role: "group",
    "aria-label": title,
  });
  for (const tick of ticks)
    drawing.append(
      svg("line", { class: "grid", x1: size.left, x2: size.width - size.right, y1: py(tick), y2: py(tick) }),
      svg("text", {
        x: size.left - 8,
        y: py(tick) + 4,
        "text-anchor": "end",
        text: logarithmic ? `1e${tick}` : short(tick, 3),
      }),
    );
  drawing.append(
    svg("polyline", { points: points.map(({ x, y }) => `${px(x)},${py(scale(y))}`).join(" ") }),
    svg("text", { x: (size.left + size.width) / 2, y: size.height - 6, "text-anchor": "middle", text: xName }),
    svg("text", { x: -size.height / 2, y: 14, "text-anchor": "middle", transform: "rotate(-90)", text: yName }),
    svg("text", { x: px(from), y: size.height - 22, "text-anchor": "middle", text: String(from) }),
    svg("text", { x: px(to), y: size.height - 22, "text-anchor": "middle", text: String(to) }),
  );
  points.forEach((point, i) =>
    drawing.append(curvePoint(point, px(point.x), py(scale(point.y)), point.x === chosen, i === 0, choose)),
  );
  return drawing;
}

function curvePoint(point, cx, cy, chosen, first, choose) {
  const text = `${point.text}: ${short(point.y)}`;
  const dot = svg("circle", {
    cx,
    cy,
    r: chosen ? 6 : 4,
    class: chosen ? "chosen" : null,
    tabindex: first ? 0 : -1,
    role: "button",
    "aria-label": text,
    onclick: () => choose(point),
    onpointermove: (event) => tooltip([text], { x: event.clientX, y: event.clientY }),
    onpointerleave: () => tooltip([], null),
    onfocus: () => {
      const box = dot.getBoundingClientRect();
      tooltip([text], { x: box.right, y: box.bottom });
    },
    onblur: () => tooltip([], null),
    onkeydown: (event) => curveKey(event, dot, () => choose(point)),
  });
  return dot;
}

function curveKey(event, dot, choose) {
  const next = { ArrowRight: dot.nextElementSibling, ArrowLeft: dot.previousElementSibling }[event.key];
  if (event.key === "Enter" || event.key === " ") choose();
  else if (next?.tagName === "circle") {
    dot.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  } else return;
  event.preventDefault();
}

/** Round numbers covering the range; integers for logarithms. */
function ticksOf(numbers, logarithmic) {
  const [least, largest] = [Math.min(...numbers), Math.max(...numbers)];
  const rough = (largest - least || Math.abs(least) || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const width = logarithmic
    ? Math.max(1, Math.ceil(rough))
    : [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const first = Math.floor(least / width);
  const last = Math.max(first + 1, Math.ceil(largest / width));
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * width).toPrecision(12)));
}
