// Findings about a step in words: {text, nodes, wrong}. `nodes` are the values concerned, `wrong` is true for errors
// such as NaN. Each rule below is a function from the step to findings.

const NOTHING = 1e-5; // a gradient this small relative to the largest is rounding
const LARGE_RATIO = 1e3; // between the first and the last layer: vanishing or exploding

const RULES = [
  whatWentWrong,
  wrongGradients,
  whereNaNBegan,
  whereTheSweepStopped,
  unreached,
  keyBiases,
  zeroGradients,
  alongDepth,
  deadUnits,
];

function findingsOf(step) {
  step.findings ??= RULES.flatMap((rule) => rule(step));
  return step.findings;
}

function parametersOf(step) {
  return step.nodes.filter((node) => node.kind === "parameter");
}

function normOf(array) {
  return array?.statistics.norm ?? 0;
}

/** The findings about any of these values. */
function findingsAbout(step, nodes) {
  return findingsOf(step).filter((finding) => finding.nodes.some((node) => nodes.includes(node)));
}

/** A gradient below this is rounding, compared with the parameters' largest; it is shown without color. */
function roundingOf(step) {
  step.rounding ??=
    NOTHING * Math.max(0, ...parametersOf(step).map((node) => (node.gradient ? magnitude(node.gradient) : 0)));
  return step.rounding;
}

/** The root mean square: the norm independent of the number of elements. */
function typicalSize(array) {
  return normOf(array) / Math.sqrt(Math.max(1, array.statistics.count));
}

// ---- the reason for saving the step --------------------------------------------------------------------------------

function whatWentWrong(step) {
  if (!step.opened_at) return [];
  const node = nodeOfTrouble(step);
  return [{ nodes: node ? [node] : [], wrong: true, text: step.opened_at.text }];
}

function whereTheSweepStopped(step) {
  const nodes = parametersOf(step).filter((node) => node.awaited);
  if (!nodes.length) return [];
  const text =
    `The backward pass stopped at ${step.stoppedAt.label}, before reaching ${namesOf(nodes)}: ` +
    "no gradient there.";
  return [{ nodes: [step.stoppedAt, ...nodes], wrong: true, text }];
}

// ---- NaN and infinity ----------------------------------------------------------------------------------------------

function wrongNumbers(array) {
  return array ? array.statistics.nan + array.statistics.infinite : 0;
}

/** True if all readers pass a value on to softmax. */
function leadsToSoftmax({ readers }) {
  const handsOn = ({ operation }) => SCALES.has(operation) || MOVES.has(operation);
  const leads = ({ node }) => SOFTMAX.has(node.operation) || (handsOn(node) && leadsToSoftmax(node));
  return readers.length > 0 && readers.every(leads);
}

/** True if a value's infinities come from a mask or are only for masks: they are intended, and softmax yields 0. */
function isOfMask(step, node) {
  const { kind, operation, value, readers, inputs } = node;
  if (value.statistics.nan > 0) return false;
  const forMasks = kind === "constant" && readers.every((reader) => MASKS.has(reader.node.operation));
  if (forMasks || MASKS.has(operation)) return true;
  // -inf added to scores, and values computed from it on the way to softmax.
  const isGiven = kind === "constant" || inputs.some((input) => wrongNumbers(step.nodes[input].value) > 0);
  return isGiven && numbersOf(value).every((x) => x < Infinity) && leadsToSoftmax(node);
}

/** The first value with NaN or infinity in the forward pass, or else in the backward pass. */
function whereNaNBegan(step) {
  const bad = (node) => wrongNumbers(node.value) > 0 && !isOfMask(step, node);
  const first = step.nodes.find(bad);
  const said = (node, array, when) => {
    const { nan, infinite, count } = array.statistics;
    const what = nan ? "NaN" : "Infinity";
    const made =
      node.kind === "operation"
        ? `at ${node.operation}, which computed ${node.label}`
        : `in the ${node.kind} ${node.name || node.label}`;
    return {
      nodes: [node],
      wrong: true,
      text:
        `${what} first occurred ${when} ${made}: ${nan + infinite} of ${counted(count, "number")}. ` +
        "Everything computed from it may be wrong.",
    };
  };
  if (first) return [said(first, first.value, "in the forward pass")];
  const swept = [...step.nodes].reverse().find((node) => wrongNumbers(node.gradient) > 0);
  return swept ? [{ ...said(swept, swept.gradient, "in the backward pass"), text: sweepText(swept) }] : [];
}

function sweepText(node) {
  const from = [...new Set(node.readers.map((reader) => reader.node.operation))];
  const { nan, infinite, count } = node.gradient.statistics;
  return (
    `${nan ? "NaN" : "Infinity"} first occurred in the backward pass in ${gradientLabel(node)}, ` +
    `computed by the rule of ${listed(from)}: ` +
    `${nan + infinite} of ${counted(count, "number")}.`
  );
}

// ---- missing or zero gradients -------------------------------------------------------------------------------------

function unreached(step) {
  if (step.loss < 0) return [];
  const nodes = parametersOf(step).filter((node) => !node.reached && !node.awaited);
  if (!nodes.length) return [];
  const learn =
    nodes.length === 1
      ? "it gets no gradient and is not trained. Is its result"
      : "they get no gradient and are not trained. Are their results";
  return [
    { nodes, wrong: true, text: `The loss does not depend on ${namesOf(nodes)}: ${learn} unused or detached?` },
  ];
}

/** The names of parameters; for more than three, the first and the last. */
function namesOf(nodes) {
  const names = nodes.map((node) => node.name || node.label);
  return names.length <= 3 ? listed(names) : `${names.length} parameters, ${names[0]} to ${names.at(-1)}`;
}

/** True if all elements of the gradient are 0. */
function isZero({ gradient }) {
  return gradient && gradient.statistics.count > 0 && gradient.statistics.zeros === gradient.statistics.count;
}

/** True if the gradient is only rounding. */
function vanishes(step, node) {
  step.largestNorm ??= Math.max(...parametersOf(step).map((other) => normOf(other.gradient)), 0);
  const { statistics } = node.gradient;
  const isKnown = statistics.nan + statistics.infinite === 0 && statistics.norm !== null;
  return isKnown && statistics.norm <= NOTHING * step.largestNorm;
}

/** The softmax or attention with keys shifted by this bias; null if there is none or a value has several readers. */
function softmaxOfKeys(bias) {
  const added = (reader) =>
    (reader.node.operation === LINEAR && reader.position === 2) || reader.node.operation === ADD;
  const toScores = ({ node, position }) => {
    if (MOVES.has(node.operation)) return one(node.readers, toScores);
    if (ATTENTION.has(node.operation)) return position === 1 ? node : null;
    return PRODUCTS.has(node.operation) && position === 1 ? one(node.readers, toSoftmax) : null;
  };
  const toSoftmax = ({ node }) => {
    if (SOFTMAX.has(node.operation)) return node;
    return SCALES.has(node.operation) || MOVES.has(node.operation) ? one(node.readers, toSoftmax) : null;
  };
  const one = (readers, follow) => (readers.length === 1 ? follow(readers[0]) : null);
  return one(bias.readers, (reader) => (added(reader) ? one(reader.node.readers, toScores) : null));
}

function keyBiases(step) {
  const found = parametersOf(step)
    .filter((node) => node.gradient && node.shape.length === 1 && vanishes(step, node))
    .map((node) => ({ node, softmax: softmaxOfKeys(node) }))
    .filter(({ softmax }) => softmax);
  if (!found.length) return [];
  const nodes = found.map(({ node }) => node);
  const single = nodes.length === 1;
  const rounding = nodes.every(isZero) ? "" : " up to rounding";
  const { softmax } = found[0];
  const scores =
    single && SOFTMAX.has(softmax.operation) ? gradientLabel(step.nodes[softmax.inputs[0]]) : "the scores' gradient";
  const made = single ? gradientLabel(nodes[0]) : "the bias's gradient";
  const text =
    `The gradient of ${namesOf(nodes)} is 0${rounding}. This is correct: a bias of the keys adds the same number to ` +
    `every score of a query, and softmax does not depend on such a shift. ` +
    `So each row of ${scores} sums to 0, and ${made}, computed from these sums, is 0, too.`;
  return [{ nodes, text }];
}

function zeroGradients(step) {
  const explained = new Set(keyBiases(step).flatMap((finding) => finding.nodes));
  const nodes = parametersOf(step).filter((node) => node.reached && isZero(node) && !explained.has(node));
  if (!nodes.length) return [];
  return [
    {
      nodes,
      wrong: true,
      text: `The gradient of ${namesOf(nodes)} is 0 everywhere: this step trains nothing there.`,
    },
  ];
}

// ---- gradients from layer to layer ---------------------------------------------------------------------------------

/** The path of operations with the largest gradients, from the first one to the loss. */
function strongestPath(step) {
  const path = [];
  for (let node = step.nodes[step.loss]; node;) {
    path.unshift(node);
    const before = node.inputs
      .map((input) => step.nodes[input])
      .filter((input) => input.kind === "operation" && input.gradient);
    node = before.sort((a, b) => typicalSize(b.gradient) - typicalSize(a.gradient))[0];
  }
  return path;
}

/**
 * The last operation with a gradient in each numbered layer; with fewer than three, products on the strongest path.
 */
function depthOf(step) {
  const swept = step.operations.filter((node) => node.gradient && normOf(node.gradient) > 0);
  const numbered = new Map();
  for (const node of swept) {
    const layer = node.layer.match(/^.*?\.\d+(?=\.|$)/)?.[0];
    if (layer) numbered.set(layer, node);
  }
  if (numbered.size >= 3) return [...numbered].map(([name, node]) => ({ name, node }));
  return strongestPath(step)
    .filter((node) => swept.includes(node) && (node.operation === LINEAR || PRODUCTS.has(node.operation)))
    .map((node) => ({ name: node.label, node }));
}

function alongDepth(step) {
  const depth = depthOf(step);
  if (depth.length < 3) return [];
  const [first, last] = [depth[0], depth.at(-1)];
  const ratio = typicalSize(first.node.gradient) / typicalSize(last.node.gradient);
  if (ratio > 1 / LARGE_RATIO && ratio < LARGE_RATIO) return [];
  const [word, verb, times] = ratio < 1 ? ["vanish", "shrink", 1 / ratio] : ["explode", "grow", ratio];
  const each = times ** (1 / (depth.length - 1));
  return [
    {
      nodes: [],
      wrong: true,
      text:
        `Gradients ${word}: from ${last.name} back to ${first.name} they ${verb} by a factor of ${short(times, 2)}, ` +
        `about ${short(each, 2)} at each of ${depth.length} places.`,
    },
  ];
}

// ---- dead units ----------------------------------------------------------------------------------------------------

function deadUnits(step) {
  return step.operations
    .filter(({ operation, value }) => operation === RELU && value?.statistics.count > 0)
    .filter(({ value }) => (value.pooled?.at(-1) ?? 1) === 1)
    .map((node) => ({ node, ...countDead(node.value) }))
    .filter(({ dead }) => dead > 0)
    .map(({ node, dead, units }) => ({
      nodes: [node],
      wrong: dead > units / 2,
      text:
        `${dead} of the ${counted(units, "unit")} of ${node.label}${node.layer ? ` in ${node.layer}` : ""} are dead: ` +
        `relu returns 0 there for all inputs of this step, so no gradient flows back through them.`,
    }));
}

/** Counts units without nonzero elements; a unit is an index along the last axis. */
function countDead(array) {
  const units = array.shape.at(-1) ?? 1;
  const alive = new Set();
  numbersOf(array).forEach((x, i) => {
    if (x !== 0) alive.add(i % units);
  });
  return { units, dead: units - alive.size };
}
