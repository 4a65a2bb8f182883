// Which axes of a result are axes of what it was made of: so values without axes of their own, such as q kᵀ, have those
// of the values beside them.

/** Gives the axes of values their names and labels, from the first operation to the last and then back. */
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

/** The axes that an operation's result has from its input at a position, as [axis of the result, axis of the input]. */
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

/** Pairs of axes as broadcasting lays two shapes upon each other. */
function fromTheLast(shape, other) {
  const count = Math.min(shape.length, other.length);
  return Array.from({ length: count }, (_, i) => [shape.length - count + i, other.length - count + i]);
}

/** The rows are the first factor's, the columns the second's, and the axes before them both's. */
function axesOfProduct(shape, factor, position) {
  if (Math.min(shape.length, factor.length) < 2) return [];
  const own = [shape.length - 2 + position, factor.length - 2 + position];
  return [...fromTheLast(shape.slice(0, -2), factor.slice(0, -2)), own];
}

/** Numbers stay in their order, so the same extents before or after all others are the same axes. */
function axesReshaped(shape, before) {
  const [first, last] = [shape.findIndex((extent, axis) => extent !== before[axis]), fromTheLast(shape, before)];
  if (first < 0) return last;
  const isLast = (pair) => last.slice(last.indexOf(pair)).every(([of, from]) => shape[of] === before[from]);
  const leading = shape.slice(0, first).map((_, axis) => [axis, axis]);
  return [...leading, ...last.filter((pair) => pair[0] >= first && isLast(pair))];
}

/** Which axis went where is not told, but for an extent that no other axis has. */
function axesTransposed(shape, before) {
  const isAlone = (extent) => shape.indexOf(extent) === shape.lastIndexOf(extent);
  return shape.flatMap((extent, axis) => (isAlone(extent) ? [[axis, before.indexOf(extent)]] : []));
}

/** Gives a value another's axes, [own axis, axis of the other], where it has none and no other of that name. */
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
