// The view of attention: all heads of an operation side by side, what the mask hides hatched, each with the gradient of
// its weights; and for one head, lines from each token to those it attends to.

const HEAD_BOX = { width: 205, height: 190 };
const LINK_WIDTH = 340;
const FAINTEST = 0.03; // of the lines that are drawn, beside the strongest of its query

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
  const links = tokenLinks(node, batch, head, limits.weights);
  const grid = element("div", { class: "heads" });
  for (let h = 0; h < heads; ++h) grid.append(headFigure(node, batch, h, limits, h === head ? links.light : null));
  fill(
    panel,
    element("p", {
      class: "caption",
      text:
        "A row is a query, a column a key: how much the query's token takes of the key's. A row adds up to 1. " +
        "Hatched: the mask hides that key." +
        (gradient
          ? " Beside each head's weights P, their gradient dP: blue, where more weight would make the loss smaller."
          : ""),
    }),
    element("div", { class: "choices" }, ...choices),
    element("div", { class: "attention" }, grid, links.figure),
  );
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

/**
 * Queries at the left, keys at the right, and lines as strong as the weights; a token under the pointer, or in focus,
 * leaves its own. light(query) does so from outside, light(null) ends it.
 */
function tokenLinks(node, batch, head, limit) {
  const { weights } = node.attention;
  const matrix = matrixOf(weights, lastAxes(weights.shape), [batch, head]);
  const queries = tokensOf(node.attention.queries, batch, matrix.rows);
  const keys = tokensOf(node.attention.keys, batch, matrix.columns);
  const most = Math.max(queries.length, keys.length);
  const line = most > 40 ? 14 : 22;
  const y = (i) => (i + 0.5) * line + 4;
  const x = { query: 90, key: LINK_WIDTH - 90 };
  const weightOf = (side, i, j) => (side === "query" ? matrix.at(i, j) : matrix.at(j, i));
  const strongest = (side, i) => {
    const others = side === "query" ? keys : queries;
    return Math.max(...others.map((_, j) => weightOf(side, i, j))) || 1;
  };
  const all = [];
  for (let q = 0; q < matrix.rows; ++q)
    for (let k = 0; k < matrix.columns; ++k) {
      if (matrix.at(q, k) < FAINTEST * strongest("query", q)) continue;
      all.push({ q, k, path: svg("line", { x1: x.query + 4, y1: y(q), x2: x.key - 4, y2: y(k) }) });
    }
  const said = element("p", { class: "said" });
  const texts = { query: [], key: [] };

  // A token's lines are as strong as they are beside its strongest; all together, beside the strongest of all.
  const show = (side, i) => {
    const most = i === null ? limit || 1 : strongest(side, i);
    for (const { q, k, path } of all) {
      path.classList.toggle("off", i !== null && (side === "query" ? q : k) !== i);
      path.style.strokeOpacity = matrix.at(q, k) / most;
    }
    for (const at of ["query", "key"])
      texts[at].forEach((text, j) => {
        const own = at === side && j === i;
        text.classList.toggle("own", own);
        text.style.opacity = i === null || own ? 1 : at === side ? 0.35 : 0.25 + (0.75 * weightOf(side, i, j)) / most;
      });
    said.textContent = i === null ? "Point at a token." : sentence(side, i, (j) => weightOf(side, i, j));
  };
  const sentence = (side, i, weight) => {
    const [own, others] = side === "query" ? [queries, keys] : [keys, queries];
    const ranked = others
      .map((token, j) => [token, weight(j)])
      .filter(([, w]) => w > 0)
      .sort((a, b) => b[1] - a[1])
      .slice(0, 3);
    const words = ranked.map(([token, w]) => `${token} (${short(w, 3)})`);
    if (!words.length) return `${own[i]} ${side === "query" ? "attends to nothing" : "gets no attention"}`;
    return side === "query"
      ? `${own[i]} attends most to ${listed(words)}`
      : `${own[i]} is attended to most by ${listed(words)}`;
  };

  const token = (side, text, i) => {
    const label = svg("text", {
      x: side === "query" ? x.query : x.key,
      y: y(i),
      "text-anchor": side === "query" ? "end" : "start",
      "dominant-baseline": "middle",
      tabindex: i === 0 ? 0 : -1,
      role: "button",
      "aria-label": `${side} ${i}: ${text}`,
      text,
      onpointerenter: () => show(side, i),
      onpointerleave: () => show(side, null),
      onfocus: () => {
        show(side, i);
        announce(said.textContent);
      },
      onblur: () => show(side, null),
      onkeydown: (event) => moveToken(event, texts, side, i),
    });
    texts[side].push(label);
    return label;
  };
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${LINK_WIDTH} ${most * line + 8}`,
      role: "group",
      "aria-label": `Who attends to whom, head ${head}`,
    },
    svg("g", { class: "links" }, ...all.map(({ path }) => path)),
    ...queries.map((text, i) => token("query", text, i)),
    ...keys.map((text, i) => token("key", text, i)),
  );
  const figure = element(
    "figure",
    { class: "links-figure" },
    element("figcaption", {}, element("strong", { text: `head ${head}` }), " queries → keys"),
    said,
    drawing,
  );
  show("query", null);
  return { figure, light: (query) => show("query", query) };
}

/** Arrow keys go from token to token, and from the queries to the keys. */
function moveToken(event, texts, side, i) {
  const to = {
    ArrowDown: () => texts[side][i + 1],
    ArrowUp: () => texts[side][i - 1],
    ArrowRight: () => texts.key[Math.min(i, texts.key.length - 1)],
    ArrowLeft: () => texts.query[Math.min(i, texts.query.length - 1)],
  }[event.key]?.();
  if (!to) return;
  event.preventDefault();
  event.target.setAttribute("tabindex", -1);
  to.setAttribute("tabindex", 0);
  to.focus();
}
