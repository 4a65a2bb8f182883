// Cards: a small view of an array, with its name above and notes below.

const CARD_BOX = { width: 200, height: 170 };
const WIDE_CARD_BOX = { width: 262, height: 190 }; // for few cards
const CARD_MOST = 160; // rows and columns

/** An axis's name, or "axis" and its number. Axes with the same name share a selected index. */
function axisName(node, axis) {
  return node.axis_names?.[axis] || `axis ${axis}`;
}

/** The selected index along each axis of the stored `array`; state.places holds indices of the whole array. */
function indexOf(node, array) {
  return array.shape.map((extent, axis) => {
    const whole = state.places.get(axisName(node, axis)) ?? 0;
    return Math.min(Math.floor(whole / pooledAlong(array, axis)), extent - 1);
  });
}

/** The names of the stored indices along an axis: labels or numbers; "8–11" if averaged. */
function placeNames(node, array, axis) {
  const labels = pooledAlong(array, axis) === 1 ? node.axes?.[axis] : null;
  return Array.from(
    { length: array.shape[axis] },
    (_, i) => labels?.[i] ?? formatPlaces(placesOf(array, axis, i), node.shape[axis]),
  );
}

/** A menu to select the index along an axis of an array. Calls `changed` after a selection. */
function placeChoice(node, array, axis, changed) {
  const name = axisName(node, axis);
  return choice(name, [...placeNames(node, array, axis).entries()], indexOf(node, array)[axis], (i) => {
    state.places.set(name, placesOf(array, axis, Number(i)).from);
    changed();
  });
}

/** The labels of a view's rows or columns; null if unknown or if a cell covers several. */
function labelsAlong(node, array, axis, count) {
  const labels = axis < 0 ? null : node.axes?.[axis];
  return labels && count === labels.length && pooledAlong(array, axis) === 1 ? labels : null;
}

/**
 * The heat map of a node's array. `kind` names it: {name, of}; `of` is the value's name if it is a gradient. Options
 * as in heatmap(), except `marked`, a whole-array position; plus `axes`, and `most`, the maximum number of rows and
 * columns.
 */
function arrayMap(node, array, kind, options = {}) {
  const axes = options.axes ?? lastAxes(array.shape);
  const matrix = averaged(matrixOf(array, axes, indexOf(node, array)), options.most ?? CARD_MOST);
  // Shows a gradient of pure rounding errors as 0.
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

/** The tooltip of one number: its exact value, its position, and the meaning of a gradient. */
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
 * A button that copies the C++ expression of a node's value or gradient, such as `tape.find<float>("head").grad()`; null
 * for other arrays and unnamed constants.
 */
function copyButton(node, array) {
  const part = array && (array === node.value ? "value" : array === node.gradient ? "grad" : null);
  if (!part || !node.find) return null;
  const expression = `${node.find}.${part}()`;
  const button = element("button", {
    class: "copy",
    title: `Copy ${expression}`,
    text: "copy path",
    onclick: () =>
      navigator.clipboard.writeText(expression).then(
        () => say("copied"),
        () => say(expression), // without permission: the reader can select it
      ),
  });
  const say = (text) => {
    button.textContent = text;
    announce(text === expression ? expression : `Copied ${expression}`);
  };
  return button;
}

/**
 * A card. `heading` and `subtitle` are shown above, `kind` is as in arrayMap, `lit` is the class of an array in use
 * ("read", "written" or none), `limit` and `box` are the map's, and `missing` is shown instead of a missing array.
 */
function card(node, array, kind, { heading = kind.name, subtitle = "", lit = "", missing = "", limit, box } = {}) {
  const classes = ["card", kind.of ? "gradient" : "value", lit].join(" ");
  const name = element(
    "button",
    { class: "title", title: `Enlarge ${kind.name}`, onclick: () => inspect(node) },
    element("strong", { text: heading }),
    element("small", { text: formatShape(node.shape) }),
  );
  const below = subtitle ? element("p", { class: "subtitle", text: subtitle }) : null;
  const instead = insteadOf(array, missing);
  if (instead !== null)
    return element("div", { class: classes }, name, below, element("p", { class: "note", text: instead }));
  const options = { ...(limit === undefined ? {} : { limit }), ...(box ? { box } : {}) };
  return element(
    "div",
    { class: classes },
    name,
    below,
    arrayMap(node, array, kind, options),
    ...notesOf(node, array),
    copyButton(node, array),
  );
}

/** Notes on an array: its range, NaN and infinity, averaging. */
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
 * A menu for each axis out of view in the nodes' cards, such as batch and head. Nodes share the menu of an axis name;
 * it covers the longest such axis. Calls `changed` after a selection.
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
