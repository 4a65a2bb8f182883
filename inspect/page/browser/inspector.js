// The inspector: a large view of a value and its gradient, their origins, and optionally all their numbers.

const LARGE_BOX = { width: 560, height: 460 };
const BOX_OF_FOUR = { width: 420, height: 340 }; // if a gradient is compared
const LARGE_MOST = 512;
const MOST_LISTED = 8; // parts of a gradient
const MOST_OF_TABLE = 5000; // cells; browsers are slow with more

/** Opens the dialog for a node of the step shown. */
function inspect(node) {
  const dialog = place("inspector");
  const view = { node, axes: null, table: false, comparison: comparisonOf(node) };
  if (view.comparison) lookAt(node, view.comparison);
  renderInspector(dialog, view);
  if (!dialog.open) dialog.showModal();
}

/** Selects the indices along the axes out of view to show the largest difference. */
function lookAt(node, { where }) {
  for (const [axis, { from }] of where.slice(0, -2).entries()) state.places.set(axisName(node, axis), from);
}

function renderInspector(dialog, view) {
  const step = currentStep();
  const { node } = view;
  const again = () => renderInspector(dialog, view);
  const shown = node.value ?? node.gradient;
  if (shown && !view.axes) view.axes = lastAxes(shown.shape);
  fill(
    dialog,
    element(
      "header",
      {},
      element("h2", { text: node.name || node.label }),
      element("p", { text: whatItIs(step, node) }),
      element("button", { class: "close", "aria-label": "Close", text: "×", onclick: () => dialog.close() }),
    ),
    element("div", { class: "choices" }, ...(shown ? axisChoices(view, shown, again) : [])),
    element("div", { class: "pair" }, ...sideBySide(step, view)),
    ...argumentsOf(view),
    element("ul", { class: "origins" }, ...origins(step, node)),
  );
}

/** An operation's arguments besides its inputs: a line with all, and a large view of each array. */
function argumentsOf(view) {
  const all = view.node.arguments ?? [];
  if (!all.length) return [];
  const line = all.map(({ name, text }) => `${name} = ${text}`).join(", ");
  const large = ({ name, value }) => {
    const unlabeled = { ...view.node, shape: value.shape, axes: undefined, axis_names: undefined };
    return inLarge({ ...view, node: unlabeled, axes: lastAxes(value.shape) }, value, { name }, {});
  };
  return [
    element("p", { class: "arguments", text: `Arguments: ${line}` }),
    element("div", { class: "pair" }, ...all.filter(({ value }) => value).map(large)),
  ];
}

/** Sentences about a value's kind, shape and layer, and the meaning of its gradient. */
function whatItIs(step, node) {
  const kinds = { operation: `Computed by ${node.operation}`, parameter: "A parameter", constant: "A constant" };
  const made = kinds[node.kind];
  const layer = node.layer ? ` in ${node.layer}` : "";
  const loss = lossOf(step);
  const meaning =
    node.gradient && loss
      ? ` Each element of ${gradientLabel(node)} is the derivative of ${loss.name} with respect to the same element ` +
        `of the value: the change of the loss per unit of increase.`
      : "";
  const rest = isIncomplete(node) ? " The backward pass stopped before the gradient was complete." : "";
  return `${made}${layer}, of shape ${formatShape(node.shape)}.${meaning}${rest}`;
}

/** Menus for the axes of rows and columns, and for the indices along the others. */
function axisChoices(view, array, changed) {
  const { node } = view;
  const rank = array.shape.length;
  if (rank < 2) return [];
  const axes = array.shape.map((_, axis) => [axis, axisName(node, axis)]);
  const take = (which, other) => (value) => {
    if (Number(value) === view.axes[other]) view.axes[other] = view.axes[which];
    view.axes[which] = Number(value);
    changed();
  };
  const chosen = [
    choice("rows", axes, view.axes.rows, take("rows", "columns")),
    choice("columns", axes, view.axes.columns, take("columns", "rows")),
  ];
  const placeChosen = () => {
    changed();
    render();
  };
  for (const [axis] of axes)
    if (axis !== view.axes.rows && axis !== view.axes.columns)
      chosen.push(placeChoice(node, array, axis, placeChosen));
  chosen.push(
    element("button", {
      text: view.table ? "Hide the numbers" : "Show the numbers",
      "aria-pressed": String(view.table),
      onclick: () => {
        view.table = !view.table;
        changed();
      },
    }),
  );
  return chosen;
}

/** The value and its gradient; if compared, also the other gradient, in the same colors, and the difference. */
function sideBySide(step, view) {
  const { node, comparison } = view;
  const kind = { name: gradientLabel(node), of: node.label };
  const why = node.gradient ? "" : whyNoGradient(step, node);
  const value = inLarge(view, node.value, { name: node.label }, { missing: "Its value was not kept." });
  if (!comparison) return [value, inLarge(view, node.gradient, kind, { missing: why })];
  const { name, gradient, difference, where } = comparison;
  const limit = Math.max(magnitude(gradient), node.gradient ? magnitude(node.gradient) : 0);
  const of = (words) => ({ ...kind, name: `${kind.name} (${words})` });
  return [
    value,
    inLarge(view, node.gradient, of("tape"), { heading: "gradient (tape)", missing: why, limit, marked: where }),
    inLarge(view, gradient, of(name), { heading: name, limit, marked: where }),
    inLarge(
      view,
      difference,
      { name: `${kind.name} (tape) − ${kind.name} (${name})` },
      {
        heading: "difference",
        words: `The two differ${furthestApart(node, comparison)}.`,
        limit: magnitude(difference),
        marked: where,
      },
    ),
  ];
}

/**
 * A large view of an array with `heading`, `words` and its statistics, or `missing` if there is no array. `limit` and
 * `marked` are the map's.
 */
function inLarge(view, array, kind, { heading = kind.name, words = "", missing = "", ...map }) {
  const { node, axes } = view;
  const side = element("section", { class: kind.of ? "gradient" : "value" }, element("h3", { text: heading }));
  const instead = insteadOf(array, missing);
  if (instead !== null) {
    side.append(element("p", { class: "note", text: instead }));
    return side;
  }
  const box = view.comparison ? BOX_OF_FOUR : LARGE_BOX;
  side.append(arrayMap(node, array, kind, { axes, box, most: LARGE_MOST, ...map }), ...notesOf(node, array).slice(1));
  const copy = copyButton(node, array);
  if (copy) side.append(copy);
  if (words) side.append(element("p", { class: "apart", text: words }));
  const statistics = element("p", { class: "statistics" });
  for (const [text, wrong] of statisticsOf(array))
    statistics.append(element("span", { text, class: wrong ? "wrong" : null }));
  side.append(statistics);
  if (view.table || array.shape.length < 2) side.append(tableOf(node, array, axes, kind));
  return side;
}

function whyNoGradient(step, node) {
  if (node.kind === "constant") return "A constant has no gradient.";
  return node.reached ? "Its gradient is not needed." : whyNotReached(step, node);
}

/** A table of the numbers in view. */
function tableOf(node, array, axes, kind) {
  const matrix = matrixOf(array, axes, indexOf(node, array));
  const heads = (axis, count) =>
    labelsAlong(node, array, axis, count)?.map((label, i) => `${i} ${label}`) ??
    Array.from({ length: count }, (_, i) => formatPlaces(placesOf(array, axis, i), node.shape[axis]));
  const rows = Math.min(matrix.rows, Math.max(1, Math.floor(MOST_OF_TABLE / matrix.columns)));
  const columns = Math.min(matrix.columns, MOST_OF_TABLE);
  const rowHeads = heads(axes.rows, matrix.rows);
  const cell = (x) => ({ text: exact(x), class: Number.isFinite(x) ? null : "wrong" });
  const body = Array.from({ length: rows }, (_, r) => [
    rowHeads[r],
    ...Array.from({ length: columns }, (__, c) => cell(matrix.at(r, c))),
  ]);
  const rest = rows < matrix.rows || columns < matrix.columns ? `, the first ${rows} rows and ${columns} columns` : "";
  const result = table(
    `The numbers of ${kind.name}${rest}`,
    ["", ...heads(axes.columns, matrix.columns).slice(0, columns)],
    body,
  );
  return element("div", { class: "scroll", tabindex: 0 }, result);
}

/** A list with links: the value's operation, the parts of its gradient, and findings. */
function origins(step, node) {
  const lines = [];
  const line = (text, moment, ...rest) =>
    lines.push(
      element(
        "li",
        {},
        `${text} `,
        moment ? momentLink(moment) : null,
        ...rest.map((formula) => element("code", { text: formula })),
      ),
    );
  if (node.kind === "operation")
    line("The value is computed by", node.forwardMoment, formulaText(formulaOf(step, node, node.formula).parts));
  const equations = gradientEquations(step, node);
  if (equations.length)
    lines.push(element("li", {}, "Its gradient is ", element("code", { text: equations.join(",   ") })));
  const parts = partsOf(node);
  for (const { node: reader, position } of parts.slice(0, MOST_LISTED)) {
    const rule = reader.symbols.inputs ? reader.rulesHere[position] : reader.rulesHere.join(", ");
    const formula = equations.length ? [] : [formulaText(formulaOf(step, reader, rule ?? "").parts)];
    line("A part of the gradient comes from", reader.backwardMoment, ...formula);
  }
  if (parts.length > MOST_LISTED) line(`and from ${counted(parts.length - MOST_LISTED, "other operation")}`, null);
  return [
    ...lines,
    ...findingsAbout(step, [node]).map(({ text, wrong }) =>
      element("li", { class: wrong ? "finding wrong" : "finding", text }),
    ),
  ];
}

/** A link to a moment of the story. */
function momentLink(moment, text = `${moment.node.label}${moment.backward ? ", backward" : ""}`) {
  return element("button", {
    class: "link",
    text,
    onclick: () => {
      place("inspector").close();
      go({ view: "story", moment: moment.number });
    },
  });
}
