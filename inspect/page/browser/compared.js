// Compares the tape's gradient with one computed in another way, if the page has both.

const DIFFERS = 1e-3; // relative to the larger of the two, absolute below 1

/**
 * The difference of a node's two gradients: {name, gradient, difference, at, where, tape, other}; null without a
 * comparison. `gradient` is the other gradient, `difference` an array, `at` the flat index of its largest magnitude,
 * `where` this position in the whole array, `tape` and `other` the two values there.
 */
function comparisonOf(node) {
  if (!node.compared) return null;
  const { name, gradient } = node.compared;
  const others = numbersOf(gradient);
  const tapes = node.gradient ? numbersOf(node.gradient) : new Float32Array(others.length); // a missing one counts as 0
  const difference = tapes.map((x, i) => x - others[i]);
  const size = (i) => (Number.isNaN(difference[i]) ? Infinity : Math.abs(difference[i]));
  const at = difference.reduce((most, _, i) => (size(i) > size(most) ? i : most), 0);
  const where = placeOf(gradient, at);
  return { name, gradient, difference: arrayLike(gradient, difference), at, where, tape: tapes[at], other: others[at] };
}

/** The largest difference of the two gradients, as the end of a sentence. */
function furthestApart(node, { name, where, tape, other }) {
  const at = where.length ? ` most at ${formatPlace(where, node.shape)}` : "";
  return `${at}: ${short(tape)} on the tape, ${short(other)} ${name}`;
}

function differs({ tape, other }) {
  const within = DIFFERS * Math.max(1, Math.abs(tape), Math.abs(other));
  return !(Math.abs(tape - other) <= within); // NaN differs from all numbers
}

/** A finding for each value with different gradients. */
function wrongGradients(step) {
  return step.nodes
    .map((node) => ({ node, comparison: comparisonOf(node) }))
    .filter(({ comparison }) => comparison && differs(comparison))
    .map(({ node, comparison }) => ({
      nodes: [node],
      wrong: true,
      text: `${gradientLabel(node)} differs from the ${comparison.name} gradient${furthestApart(node, comparison)}.`,
    }));
}
