// The attention view: an operation's heads side by side, each with the weights and their gradient, masked cells
// hatched; and for one head, lines between tokens.

const MAP_SIDES = { least: 136, largest: 260 };
const HEAD_EDGES = 38; // a head's width besides its maps
const HEADS_APART = 12;
const SCROLL_BAR = 16; // may appear with the heads

function attentionNodes(step) {
  return step.operations.filter((node) => node.attention && product(node.attention.weights.shape) > 0);
}

/** Shows an operation's heads. */
function showAttention(step, node) {
  state.attention.which = attentionNodes(step).indexOf(node);
  go({ view: "attention" });
}

function renderAttention(step) {
  const panel = place("attention");
  const nodes = attentionNodes(step);
  if (!nodes.length) return;
  const node = nodes[state.attention.which] ?? nodes[0];
  const { weights, gradient } = node.attention;
  const [batches, heads] = weights.shape;
  const labelled = labelledWeights(step, node);
  const batch = indexOf(labelled, weights)[0];
  const head = Math.min(state.attention.head, heads - 1);
  const nameOf = (other) => other.layer || other.name || (nodes.length === 1 ? "attention" : other.label);
  const names = nodes.map((other, i) => [String(i), nameOf(other)]);
  const choices = [
    choice("attention of", names, String(nodes.indexOf(node)), (i) => {
      state.attention.which = Number(i);
      renderAttention(step);
    }),
    batches > 1 && placeChoice(labelled, weights, 0, render),
    choice("lines of head", [...placeNames(labelled, weights, 1).entries()], head, (value) => {
      state.attention.head = Number(value);
      renderAttention(step);
    }),
  ].filter(Boolean);

  const limits = { weights: magnitude(weights), gradient: gradient ? magnitude(gradient) : 0 };
  const links = new TokenLinks(labelled, weights, batch, head, limits.weights);
  const light = (query) => links.show("query", query);
  const grid = element("div", { class: "heads" });
  fill(
    panel,
    element("p", { class: "caption", text: captionOfHeads(node.attention) }),
    element("div", { class: "choices" }, ...choices),
    element("div", { class: "attention" }, grid, links.figure),
  );
  const side = sideOfMaps(grid.clientWidth - SCROLL_BAR, heads, gradient ? 2 : 1);
  for (let h = 0; h < heads; ++h)
    grid.append(headFigure(node, labelled, batch, h, limits, side, h === head ? light : null));
}

/** Fits the heads to the window's width on every resize. */
function startAttention() {
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (state.view === "attention" && window.innerWidth !== width) renderAttention(currentStep());
    width = window.innerWidth;
  });
}

function captionOfHeads({ weights, gradient, allowed }) {
  const sentences = ["Rows are queries, columns are keys: the weight of the key's token in the query's output."];
  if (weights.pooled) sentences.push(`A cell is the mean of ${product(weights.pooled)} weights.`);
  else sentences.push("Each row sums to 1.");
  if (allowed) sentences.push("Hatched cells are hidden by the mask.");
  if (gradient)
    sentences.push(
      "Next to each head's weights P is their gradient dP: blue where more weight would decrease the loss.",
    );
  return sentences.join(" ");
}

/**
 * A function of a cell of the weights: true if the query may attend to the key, or, for averaged weights, any of the
 * queries to any of the keys. Null without a mask.
 */
function allowedOf({ allowed }, weights, batch, head) {
  if (!allowed) return null;
  const index = [Math.min(batch, allowed.shape[0] - 1), Math.min(head, allowed.shape[1] - 1)];
  const matrix = matrixOf(allowed, lastAxes(allowed.shape), index);
  const [, , down, across] = allowed.pooled ?? [1, 1, 1, 1];
  return (row, column) => {
    const [, , queries, keys] = weights.where(row, column);
    const last = { row: Math.min(Math.floor(queries.to / down), matrix.rows - 1) };
    last.column = Math.min(Math.floor(keys.to / across), matrix.columns - 1);
    for (let i = Math.floor(queries.from / down); i <= last.row; ++i)
      for (let j = Math.floor(keys.from / across); j <= last.column; ++j) if (matrix.at(i, j) > 0) return true;
    return false;
  };
}

/**
 * The weights' shape and their axes' names and labels, in the form of a node. The tokens are the selected batch
 * entry's; if entries are averaged, only tokens common to all.
 */
function labelledWeights(step, node) {
  const { weights, queries, keys } = node.attention;
  const labelled = { shape: shapeOfWeights(step, node), axis_names: ["batch", "head", "query", "key"] };
  const { from, to } = placesOf(weights, 0, indexOf(labelled, weights)[0]);
  const tokens = (lists) => (lists?.length === 1 ? lists[0] : from === to ? lists?.[from] : null);
  return { ...labelled, axes: [null, null, tokens(queries), tokens(keys)] };
}

/** The shape of the weights before averaging. */
function shapeOfWeights(step, node) {
  const { shape } = node.attention.weights;
  const keys = step.nodes[node.inputs[1]];
  return [
    ...shape.slice(0, 2).map((extent, axis) => extent * pooledAlong(node.attention.weights, axis)),
    node.shape.at(-2),
    keys.shape.at(-2),
  ];
}

/** The width of a head's maps for rows of heads to fill the given width evenly, except for the last row. */
function sideOfMaps(width, heads, maps) {
  const inRow = Math.floor((width + HEADS_APART) / (maps * MAP_SIDES.least + HEAD_EDGES + HEADS_APART));
  const columns = Math.ceil(heads / Math.ceil(heads / Math.max(1, inRow)));
  const side = ((width + HEADS_APART) / columns - HEADS_APART - HEAD_EDGES) / maps;
  return Math.min(MAP_SIDES.largest, Math.floor(side));
}

function headFigure(node, labelled, batch, head, limits, side, light) {
  const { attention } = node;
  const name = `head ${placeNames(labelled, attention.weights, 1)[head]}`;
  const map = (array, symbol, limit) => {
    const matrix = matrixOf(array, lastAxes(array.shape), [batch, head]);
    const [queries, keys] = [2, 3].map((axis) => placeNames(labelled, array, axis));
    const allowed = allowedOf(attention, matrix, batch, head);
    const cell = (query, key) => `${symbol}${formatPlace(matrix.where(query, key), labelled.shape)}`;
    return heatmap(matrix, {
      limit,
      allowed,
      box: { width: side, height: side },
      rowLabels: queries,
      columnLabels: keys,
      label: `${symbol} of ${name}: heat map. The arrow keys read its numbers.`,
      describe: (query, key) => [
        `${cell(query, key)} = ${exact(matrix.at(query, key))}${array.pooled ? ", a mean" : ""}`,
        array.pooled
          ? `queries ${queries[query]}, keys ${keys[key]}`
          : `query ${query}: ${queries[query]}, key ${key}: ${keys[key]}`,
        ...(allowed && !allowed(query, key) ? ["hidden by the mask"] : []),
      ],
      onpoint: (query) => light?.(query ?? null),
    });
  };
  const figure = element(
    "figure",
    { class: light ? "head chosen" : "head" },
    element(
      "figcaption",
      {},
      element("button", {
        class: "link",
        text: name,
        title: "Show its lines",
        onclick: () => {
          state.attention.head = head;
          renderAttention(currentStep());
        },
      }),
    ),
  );
  const part = (title, canvas) => element("div", {}, element("small", { text: title }), canvas);
  const maps = element("div", { class: "maps" }, part("weights P", map(attention.weights, "P", limits.weights)));
  if (attention.gradient) maps.append(part("gradient dP", map(attention.gradient, "dP", limits.gradient)));
  figure.append(maps);
  return figure;
}
