// The view of attention: all heads of an operation side by side, what the mask hides hatched, each with the gradient of
// its weights; and for one head, lines from each token to those it attends to.

const HEAD_BOX = { width: 205, height: 190 };

function attentionNodes(step) {
  return step.operations.filter((node) => node.attention);
}

/** Goes to the view of an operation's heads. */
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
  const batch = Math.min(state.places.get("batch") ?? 0, batches - 1);
  const head = Math.min(state.attention.head, heads - 1);
  const names = nodes.map((other, i) => [String(i), other.layer || other.label]);
  const numbers = (count) => Array.from({ length: count }, (_, i) => [String(i), String(i)]);
  const choices = [
    choice("attention of", names, String(nodes.indexOf(node)), (i) => {
      state.attention.which = Number(i);
      renderAttention(step);
    }),
    batches > 1 &&
      choice("batch", numbers(batches), String(batch), (value) => {
        state.places.set("batch", Number(value));
        render();
      }),
    choice("lines of head", numbers(heads), String(head), (value) => {
      state.attention.head = Number(value);
      renderAttention(step);
    }),
  ].filter(Boolean);

  const limits = { weights: magnitude(weights), gradient: gradient ? magnitude(gradient) : 0 };
  const links = new TokenLinks(node, batch, head, limits.weights);
  const light = (query) => links.show("query", query);
  const grid = element("div", { class: "heads" });
  for (let h = 0; h < heads; ++h) grid.append(headFigure(node, batch, h, limits, h === head ? light : null));
  fill(
    panel,
    element("p", { class: "caption", text: captionOfHeads(gradient) }),
    element("div", { class: "choices" }, ...choices),
    element("div", { class: "attention" }, grid, links.figure),
  );
}

function captionOfHeads(gradient) {
  const weights =
    "A row is a query, a column a key: how much the query's token takes of the key's. A row adds up to 1. " +
    "Hatched: the mask hides that key.";
  const beside =
    "Beside each head's weights P, their gradient dP: blue, where more weight would make the loss smaller.";
  return gradient ? `${weights} ${beside}` : weights;
}

/** The tokens of a batch entry, or their numbers. */
function tokensOf(lists, batch, count) {
  const tokens = lists?.[lists.length === 1 ? 0 : batch];
  return tokens?.length === count ? tokens : Array.from({ length: count }, (_, i) => String(i));
}

/** Whether a query may attend to a key, as a function of both; null without a mask. */
function allowedOf(attention, batch, head) {
  const { allowed } = attention;
  if (!allowed) return null;
  const index = [Math.min(batch, allowed.shape[0] - 1), Math.min(head, allowed.shape[1] - 1)];
  const matrix = matrixOf(allowed, lastAxes(allowed.shape), index);
  return (query, key) => matrix.at(query, key) > 0;
}

function headFigure(node, batch, head, limits, light) {
  const { attention } = node;
  const allowed = allowedOf(attention, batch, head);
  const map = (array, name, limit) => {
    const matrix = matrixOf(array, lastAxes(array.shape), [batch, head]);
    const queries = tokensOf(attention.queries, batch, matrix.rows);
    const keys = tokensOf(attention.keys, batch, matrix.columns);
    return heatmap(matrix, {
      limit,
      allowed,
      box: HEAD_BOX,
      rowLabels: queries,
      columnLabels: keys,
      label: `${name} of head ${head}: heat map. The arrow keys read its numbers.`,
      describe: (query, key) => [
        `${name}[${[batch, head, query, key].join(", ")}] = ${exact(matrix.at(query, key))}`,
        `query ${query}: ${queries[query]}, key ${key}: ${keys[key]}`,
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
        text: `head ${head}`,
        title: "Show its lines",
        onclick: () => {
          state.attention.head = head;
          renderAttention(currentStep());
        },
      }),
    ),
  );
  const part = (title, canvas) => element("div", {}, element("small", { text: title }), canvas);
  figure.append(part("weights P", map(attention.weights, "P", limits.weights)));
  if (attention.gradient) figure.append(part("gradient dP", map(attention.gradient, "dP", limits.gradient)));
  return figure;
}
