// Cards: an array of a step in small, with what it is called above and what there is to know about it below.

const CARD_BOX = { width: 200, height: 170 };
const WIDE_CARD_BOX = { width: 262, height: 190 }; // where there are few
const CARD_MOST = 160; // rows and columns

/** What an axis is called: its name, or its number. Axes of one name are looked at in the same place. */
function axisName(node, axis) {
  return node.axis_names?.[axis] || `axis ${axis}`;
}

/** The stored places along the axes of `array` that are looked at now: state.places has those of the whole axes. */
function indexOf(node, array) {
  return array.shape.map((extent, axis) => {
    const whole = state.places.get(axisName(node, axis)) ?? 0;
    return Math.min(Math.floor(whole / pooledAlong(array, axis)), extent - 1);
  });
}

/** What the stored places along an axis are called: their labels or numbers; "8–11" where several are averaged. */
function placeNames(node, array, axis) {
  const labels = pooledAlong(array, axis) === 1 ? node.axes?.[axis] : null;
  return Array.from(
    { length: array.shape[axis] },
    (_, i) => labels?.[i] ?? formatPlaces(placesOf(array, axis, i), node.shape[axis]),
  );
}

/** A choice of the place along an axis of an array that is looked at. Calls `changed` after a choice. */
function placeChoice(node, array, axis, changed) {
  const name = axisName(node, axis);
  return choice(name, [...placeNames(node, array, axis).entries()], indexOf(node, array)[axis], (i) => {
    state.places.set(name, placesOf(array, axis, Number(i)).from);
    changed();
  });
}

/** The labels of the rows or columns of a view, or null where they are not known or several share a cell. */
function labelsAlong(node, array, axis, count) {
  const labels = axis < 0 ? null : node.axes?.[axis];
  return labels && count === labels.length && pooledAlong(array, axis) === 1 ? labels : null;
}

/**
 * The heat map of an array of a node. `kind` tells what to call it: {name, of} with the node's value as `of` when it is
 * a gradient. Options as in heatmap(), but for `marked`, a place in the whole array; and `axes` and `most`, the largest
 * number of rows and columns.
 */
function arrayMap(node, array, kind, options = {}) {
  const axes = options.axes ?? lastAxes(array.shape);
  const matrix = averaged(matrixOf(array, axes, indexOf(node, array)), options.most ?? CARD_MOST);
  // What is left of a gradient by rounding alone looks like the 0 that it is.
  const least = kind.of ? roundingOf(currentStep()) : 0;
  return heatmap(matrix, {
    limit: Math.max(magnitude(array), least),
    box: CARD_BOX,
    rowLabels: labelsAlong(node, array, axes.rows, matrix.rows),
    columnLabels: labelsAlong(node, array, axes.columns, matrix.columns),
    label: `${kind.name}, ${formatShape(node.shape)}: heat map. The arrow keys read its numbers.`,
    describe: (row, column) => describeCell(node, kind, matrix.where(row, column), matrix.at(row, column)),
    ...options,
    marked: options.marked && cellAt(matrix, axes, options.marked),
  });
}

/** The tooltip of one number: what it is exactly, where it stands, and what a gradient means there. */
function describeCell(node, kind, where, x) {
  const at = formatPlace(where, node.shape);
  const single = isExact(where, node.shape);
  const lines = [`${kind.name}${at} = ${single ? exact(x) : `${short(x, 6)}, a mean`}`];
  const labels = where
    .map(({ from, to }, axis) => (from === to ? [axisName(node, axis), node.axes?.[axis]?.[from]] : []))
    .filter(([, label]) => label !== undefined);
  if (labels.length) lines.push(labels.map(([axis, label]) => `${axis}: ${label}`).join(", "));
  if (kind.of && single && Number.isFinite(x))
    lines.push(`${kind.of}${at} + 0.01 changes ${kind.loss ?? "the loss"} by about ${short(x * 0.01, 3)}`);
  return lines;
}

/**
 * A card. `heading` and `subtitle` stand above, `kind` is as in arrayMap, `lit` the class of an array under way
 * ("read", "written" or none), `limit` and `box` are the map's. Without an array it says `missing`, and without
 * numbers that.
 */
function card(node, array, kind, { heading = kind.name, subtitle = "", lit = "", missing = "", limit, box } = {}) {
  const classes = ["card", kind.of ? "gradient" : "value", lit].join(" ");
  const name = element(
    "button",
    { class: "title", title: `Look at ${kind.name} in large`, onclick: () => inspect(node) },
    element("strong", { text: heading }),
    element("small", { text: formatShape(node.shape) }),
  );
  const below = subtitle ? element("p", { class: "subtitle", text: subtitle }) : null;
  const instead = insteadOf(array, missing);
  if (instead !== null)
    return element("div", { class: classes }, name, below, element("p", { class: "note", text: instead }));
  const options = { ...(limit === undefined ? {} : { limit }), ...(box ? { box } : {}) };
  return element("div", { class: classes }, name, below, arrayMap(node, array, kind, options), ...notesOf(node, array));
}

/** What has to be said of an array beside its numbers: its range, what is averaged, NaN. */
function notesOf(node, array) {
  const s = array.statistics;
  const notes = [];
  if (s && s.least !== null) {
    const text = s.count === 1 ? "" : `${short(s.least, 3)} … ${short(s.largest, 3)}`;
    notes.push(element("p", { class: "note", text }));
  }
  const wrong = s
    ? [s.nan && `${s.nan.toLocaleString("en")} NaN`, s.infinite && `${s.infinite.toLocaleString("en")} infinite`]
    : [];
  if (wrong.some(Boolean)) notes.push(element("p", { class: "note wrong", text: wrong.filter(Boolean).join(", ") }));
  const of = product(array.pooled ?? [1]);
  if (of > 1) notes.push(element("p", { class: "note", text: `each cell: mean of ${array.pooled.join(" × ")}` }));
  return notes;
}

/**
 * A choice for each axis that cannot be seen in the given nodes' cards, such as batch and head; one serves all nodes
 * that have an axis of that name, and has the places of the array that has most. Calls `changed` after a choice.
 */
function placeChoices(nodes, changed) {
  const most = new Map(); // by the axes' names
  for (const node of nodes) {
    const array = node.value ?? node.gradient;
    for (const [axis, extent] of array?.shape.slice(0, -2).entries() ?? []) {
      const name = axisName(node, axis);
      if (extent > 1 && extent >= (most.get(name)?.extent ?? 0)) most.set(name, { node, array, axis, extent });
    }
  }
  return [...most.values()].map(({ node, array, axis }) => placeChoice(node, array, axis, changed));
}
