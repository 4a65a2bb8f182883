// Propagates axis names and labels between the inputs and results of operations, to name the axes of values without
// their own, such as q kᵀ.

/** Names the axes of values, in a pass over the operations from the first to the last and another one back. */
function nameAxes(step) {
  const operations = step.nodes.filter((node) => node.kind === "operation");
  const told = new Set(step.nodes.filter((node) => node.axis_names));
  for (const node of [...operations, ...[...operations].reverse()])
    for (const [position, number] of node.inputs.entries()) {
      const input = step.nodes[number];
      const same = sameAxes(node, input, position);
      const back = same.map(([of, from]) => [from, of]);
      if (!told.has(node)) takeAxes(node, input, same);
      if (!told.has(input)) takeAxes(input, node, back);
    }
}

/** The axes common to an operation's result and an input, as [axis of the result, axis of the input]. */
function sameAxes({ operation, shape }, input, position) {
  const leading = (count) => shape.slice(0, Math.max(0, count)).map((_, axis) => [axis, axis]);
  const isSame = ([of, from]) => shape[of] === input.shape[from];
  if (IN_PLACE.has(operation)) return fromTheLast(shape, input.shape).filter(isSame);
  if (PRODUCTS.has(operation)) return axesOfProduct(shape, input.shape, position).filter(isSame);
  if (PARTS.has(operation)) return leading(shape.length).filter(isSame);
  if (operation === RESHAPE) return axesReshaped(shape, input.shape);
  if (operation === LINEAR && position === 0) return leading(shape.length - 1);
  if (ATTENTION.has(operation)) return leading(shape.length - (position === 0 ? 1 : 2));
  return TRANSPOSES.has(operation) ? axesTransposed(shape, input.shape) : [];
}

/** Pairs of axes aligned as in broadcasting. */
function fromTheLast(shape, other) {
  const count = Math.min(shape.length, other.length);
  return Array.from({ length: count }, (_, i) => [shape.length - count + i, other.length - count + i]);
}

/** A product's rows are the first factor's, its columns the second's, and the axes before them are common. */
function axesOfProduct(shape, factor, position) {
  if (Math.min(shape.length, factor.length) < 2) return [];
  const own = [shape.length - 2 + position, factor.length - 2 + position];
  return [...fromTheLast(shape.slice(0, -2), factor.slice(0, -2)), own];
}

/** Reshaping preserves the order of numbers, so equal leading or trailing extents are the same axes. */
function axesReshaped(shape, before) {
  const [first, last] = [shape.findIndex((extent, axis) => extent !== before[axis]), fromTheLast(shape, before)];
  if (first < 0) return last;
  const isLast = (pair) => last.slice(last.indexOf(pair)).every(([of, from]) => shape[of] === before[from]);
  const leading = shape.slice(0, first).map((_, axis) => [axis, axis]);
  return [...leading, ...last.filter((pair) => pair[0] >= first && isLast(pair))];
}

/** The permutation is unknown, so only axes with a unique extent are matched. */
function axesTransposed(shape, before) {
  const isAlone = (extent) => shape.indexOf(extent) === shape.lastIndexOf(extent);
  return shape.flatMap((extent, axis) => (isAlone(extent) ? [[axis, before.indexOf(extent)]] : []));
}

/** Copies names and labels along pairs [own axis, other's axis] to unnamed axes, unless the name is already used. */
function takeAxes(value, other, same) {
  if (!other.axis_names || !same.length) return;
  value.axis_names ??= value.shape.map(() => "");
  value.axes ??= value.shape.map(() => null);
  for (const [own, from] of same) {
    const name = other.axis_names[from];
    if (value.axis_names[own] || value.axis_names.includes(name)) continue;
    value.axis_names[own] = name;
    value.axes[own] ??= other.axes?.[from] ?? null;
  }
}
