// A step of the data with derived information: names, readers, and the moments of its story.

const MOST_TERMS = 6; // in a gradient's equation

/** Adds numbers, names and readers to each node, and moments to the step. Does nothing the second time. */
function prepareStep(step) {
  if (step.moments) return step;
  const { nodes } = step;
  nodes.forEach((node, number) => Object.assign(node, { number, readers: [], parts: null, awaited: false }));
  countAsTheTape(nodes);
  for (const node of nodes) node.inputs.forEach((input, position) => nodes[input].readers.push({ node, position }));
  nameAxes(step);
  for (const node of nodes) node.rulesHere = node.rules.map((rule, i) => withSum(step, node, rule, i));
  nameForFormulas(nodes, step.loss);
  nameByLayers(nodes);
  for (const node of nodes) node.label = labelOf(node);
  step.operations = nodes.filter((node) => node.kind === "operation");
  markWhereSweepStopped(step);
  const swept = step.operations.filter((node) => node.reached).reverse();
  step.moments = [
    ...step.operations.map((node) => ({ node, backward: false })),
    ...swept.map((node) => ({ node, backward: true })),
  ];
  step.moments.forEach((moment, number) => {
    moment.number = number;
    moment.node[moment.backward ? "backwardMoment" : "forwardMoment"] = moment;
  });
  step.tree = layersOf(step.operations);
  return step;
}

/** Numbers operations and parameters as in errors and printed tapes; constants are counted separately. */
function countAsTheTape(nodes) {
  const counts = { constant: 0, recorded: 0 };
  for (const node of nodes) node.numberOnTape = counts[node.kind === "constant" ? "constant" : "recorded"]++;
}

/**
 * If an error stopped the backward pass, sets `stoppedAt` to the last operation it visited, and `awaited` for values it
 * would have visited.
 */
function markWhereSweepStopped(step) {
  step.stoppedAt = null;
  const last = step.opened_at?.backward ? nodeOfTrouble(step) : null;
  if (last?.kind !== "operation") return;
  const onlyReadBy = (node) => (input) =>
    step.nodes[input].gradient && step.nodes[input].readers.every((reader) => reader.node === node);
  const passesOn = (node) => node.contributions?.some(Boolean) || node.inputs.some(onlyReadBy(node));
  const before = step.operations.filter((node) => node.number < last.number);
  if (before.some((node) => node.reached && passesOn(node))) return;
  // Their rules have not run, even if their results have gradients.
  for (const node of before) node.reached = false;
  for (const node of [...step.nodes].reverse())
    node.awaited =
      node.kind !== "constant" && !node.reached && node.readers.some((r) => r.node.reached || r.node.awaited);
  if (step.nodes.some((node) => node.awaited)) step.stoppedAt = last;
}

/** True if the gradient lacks a part because the backward pass stopped. */
function isIncomplete(node) {
  return Boolean(node.gradient) && node.readers.some((reader) => reader.node.awaited);
}

/** The reason that the backward pass did not reach a value, as a sentence about "it". */
function whyNotReached(step, node) {
  if (node === step.stoppedAt) return "The backward pass stopped here.";
  if (node.awaited) return `The backward pass stopped at ${step.stoppedAt.label}, before reaching it.`;
  return step.loss < 0 ? "There was no backward pass." : "The loss does not depend on it.";
}

/** The rule for an input, with the sum over copies if the input was broadcast; rules omit it. */
function withSum(step, node, rule, position) {
  if (!BROADCAST.has(node.operation) || node.rules.length !== node.inputs.length) return rule;
  const { shape } = step.nodes[node.inputs[position]];
  const copied = (extents) => product(PRODUCTS.has(node.operation) ? extents.slice(0, -2) : extents);
  const said = /=\s*−?Σ/.test(rule);
  return said || copied(shape) >= copied(node.shape) ? rule : rule.replace(/=\s*−?/, "$&Σ ");
}

/** Names the result of a layer with one operation, such as a linear, after the layer: "q_proj". */
function nameByLayers(nodes) {
  const withParameters = nodes.filter(
    (node) => node.layer && node.inputs.some((input) => nodes[input].kind === "parameter"),
  );
  const used = new Map();
  for (const { layer } of withParameters) used.set(layer, (used.get(layer) ?? 0) + 1);
  for (const node of withParameters)
    if (used.get(node.layer) === 1) node.ofLayer = node.layer.match(/[^.]+(\.\d+)*$/)?.[0] ?? node.layer;
}

/** A value's long name: its name, its formula, its layer's name, or its operation. */
function labelOf(node) {
  if (node.name) return node.kind === "parameter" ? node.name.split(".").slice(-2).join(".") : node.name;
  return node.short ?? node.ofLayer ?? `${node.operation || node.kind} #${node.numberOnTape}`;
}

/** The name of a value's gradient. */
function gradientLabel(node) {
  return gradientName(node.label);
}

/**
 * The terms of a value's gradient in the order of the backward pass: {node, position, part}. An operation with the
 * value as several inputs adds their terms in the order of inputs.
 */
function partsOf(value) {
  if (value.parts) return value.parts;
  const readers = value.readers.filter(({ node }) => node.reached);
  const all = readers.length === 1 ? value.gradient : null; // then possibly not stored twice
  value.parts = readers
    .map(({ node, position }) => ({ node, position, part: node.contributions?.[position] ?? all }))
    .filter(({ part }) => part)
    .sort((a, b) => b.node.number - a.node.number || a.position - b.position);
  return value.parts;
}

/**
 * An operation's contribution to the gradient of an input: {part, place, count}, number `place` of `count` parts; null
 * if there is none.
 */
function flowInto(step, node, position) {
  const parts = partsOf(step.nodes[node.inputs[position]]);
  const at = parts.findIndex((other) => other.node === node && other.position === position);
  return at < 0 ? null : { part: parts[at].part, place: at, count: parts.length };
}

/**
 * The equations of a gradient: "dX = dV Wvᵀ + dK Wkᵀ", with further equations for unnamed values up to named ones:
 * "dK = d(Kᵀ)ᵀ", "d(Kᵀ) = Qᵀ dS". Empty if names are too long for formulas or there are too many parts.
 */
function gradientEquations(step, value) {
  const parts = partsOf(value);
  if (parts.length > MOST_TERMS) return [];
  const rights = parts.map(({ node, position }) => {
    const rule = node.symbols.inputs && node.rulesHere[position];
    const whole = rule && /^\s*\w+\s*=/.test(rule); // and not "dW[ids] += dy"
    const { parts: formula, named } = whole ? formulaOf(step, node, rule) : {};
    return named ? formulaText(formula).replace(/^[^=]*=\s*/, "") : null;
  });
  const sayable =
    rights.length && !rights.includes(null) && (rights.length === 1 || !rights.some((right) => right.includes(",")));
  if (!sayable) return [];
  const equation = `${gradientLabel(value)} = ${rights.join(" + ")}`;
  const nameless = [...new Set(parts.map(({ node }) => node))].filter(
    (node) => !node.name && node.number !== step.loss,
  );
  return [equation, ...nameless.flatMap((node) => gradientEquations(step, node))];
}

/** A sentence about a moment: the values read and the values computed. */
function describeMoment(step, moment) {
  const { node, backward } = moment;
  const labels = [...new Set(node.inputs.map((input) => step.nodes[input].label))];
  if (!backward) {
    const reads = labels.length ? ` reads ${listed(labels)} and` : "";
    return `${node.operation}${reads} computes ${node.label} ${formatShape(node.shape)}.`;
  }
  const gradients = node.inputs
    .filter((_, position) => flowInto(step, node, position))
    .map((input) => gradientLabel(step.nodes[input]));
  const start = node.number === step.loss ? "The backward pass starts at the loss, whose gradient is 1. " : "";
  const stop = node === step.stoppedAt ? " The backward pass stopped here." : "";
  if (!gradients.length) return start + (stop.trim() || `${node.operation} propagates nothing.`);
  const made = listed([...new Set(gradients)]);
  return `${start}Backward through ${node.operation}: its rule computes ${made} from ${gradientLabel(node)}.${stop}`;
}

/** The loss: its node, its number, and its name in a sentence; null if there is none. */
function lossOf(step) {
  const node = step.nodes[step.loss];
  if (!node) return null;
  const number = node.value && product(node.shape) === 1 ? numbersOf(node.value)[0] : null;
  return { node, number, name: node.name ? `the loss ${node.name}` : "the loss" };
}
