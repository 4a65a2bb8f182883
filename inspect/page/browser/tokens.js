// The attention of one head: queries at the left, keys at the right, and lines with the weights as opacity. For a token
// under the pointer or in focus, shows only its own lines and describes them in words.

const LINK_WIDTH = 340;
const TEXT_WIDTH = 90;
const TEXT_FONT = "bold 12px system-ui, sans-serif"; // bold, the widest
const FAINTEST = 0.03; // smallest weight drawn, relative to the query's largest
const MOST_NAMED = 3; // attended tokens named in words

class TokenLinks {
  /** Creates `figure` for the page. `labelled` is from labelledWeights, `limit` the largest weight of all heads. */
  constructor(labelled, weights, batch, head, limit) {
    this.limit = limit || 1;
    this.matrix = matrixOf(weights, lastAxes(weights.shape), [batch, head]);
    this.tokens = { query: placeNames(labelled, weights, 2), key: placeNames(labelled, weights, 3) };
    const name = `head ${placeNames(labelled, weights, 1)[head]}`;
    const longest = Math.max(this.matrix.rows, this.matrix.columns);
    this.lineHeight = longest > 40 ? 14 : 22;
    this.ruler = element("canvas").getContext("2d");
    this.ruler.font = TEXT_FONT;
    this.said = element("p", { class: "said" });
    this.lines = this.makeLines();
    this.texts = { query: [], key: [] };
    for (const side of ["query", "key"]) this.texts[side] = this.tokens[side].map((_, i) => this.makeText(side, i));
    const drawing = svg(
      "svg",
      {
        viewBox: `0 0 ${LINK_WIDTH} ${longest * this.lineHeight + 8}`,
        role: "group",
        "aria-label": `Attention between tokens, ${name}`,
      },
      ...this.lines.map(({ path }) => path),
      ...this.texts.query,
      ...this.texts.key,
    );
    const caption = element("figcaption", {}, element("strong", { text: name }), " queries → keys");
    this.figure = element("figure", { class: "links-figure" }, caption, this.said, drawing);
    this.show("query", null);
  }

  /** The weight between token i of one side and token j of the other. */
  weight(side, i, j) {
    return side === "query" ? this.matrix.at(i, j) : this.matrix.at(j, i);
  }

  /** The weights between a token and all tokens of the other side. */
  weights(side, i) {
    return this.tokens[otherSide(side)].map((_, j) => this.weight(side, i, j));
  }

  y(i) {
    return (i + 0.5) * this.lineHeight + 4;
  }

  makeLines() {
    const lines = [];
    for (let query = 0; query < this.matrix.rows; ++query) {
      const weights = this.weights("query", query);
      const least = FAINTEST * Math.max(...weights);
      weights.forEach((weight, key) => {
        if (weight <= 0 || weight < least) return;
        const ends = { x1: TEXT_WIDTH + 4, y1: this.y(query), x2: LINK_WIDTH - TEXT_WIDTH - 4, y2: this.y(key) };
        lines.push({ query, key, weight, path: svg("line", ends) });
      });
    }
    return lines;
  }

  makeText(side, i) {
    const text = this.tokens[side][i];
    const shown = cutTo(TEXT_WIDTH, text, this.ruler);
    const properties = {
      x: side === "query" ? TEXT_WIDTH : LINK_WIDTH - TEXT_WIDTH,
      y: this.y(i),
      "text-anchor": side === "query" ? "end" : "start",
      "dominant-baseline": "middle",
      tabindex: i === 0 ? 0 : -1,
      role: "button",
      "aria-label": `${side} ${i}: ${text}`,
      text: shown,
      onpointerenter: () => this.show(side, i),
      onpointerleave: () => this.show(side, null),
      onfocus: () => {
        this.show(side, i);
        announce(this.said.textContent);
      },
      onblur: () => this.show(side, null),
      onkeydown: (event) => this.move(event, side, i),
    };
    return svg("text", properties, shown !== text && svg("title", { text }));
  }

  /** Highlights the lines and tokens of token i of a side; all for null. */
  show(side, i) {
    // The opacity is relative to the token's largest weight, or if all are shown, to the overall largest.
    const full = i === null ? this.limit : Math.max(...this.weights(side, i)) || 1;
    for (const line of this.lines) {
      line.path.classList.toggle("off", i !== null && line[side] !== i);
      line.path.style.strokeOpacity = line.weight / full;
    }
    this.texts[side].forEach((text, j) => {
      text.classList.toggle("own", j === i);
      text.style.opacity = i === null || j === i ? 1 : 0.35;
    });
    this.texts[otherSide(side)].forEach((text, j) => {
      text.classList.remove("own");
      text.style.opacity = i === null ? 1 : 0.25 + (0.75 * this.weight(side, i, j)) / full;
    });
    this.said.textContent = i === null ? "Point at a token." : this.inWords(side, i);
  }

  inWords(side, i) {
    const own = this.tokens[side][i];
    const ranked = this.weights(side, i)
      .map((weight, j) => ({ weight, token: this.tokens[otherSide(side)][j] }))
      .filter(({ weight }) => weight > 0)
      .sort((a, b) => b.weight - a.weight);
    if (!ranked.length) return `${own} ${side === "query" ? "attends to nothing" : "gets no attention"}`;
    const words = ranked.slice(0, MOST_NAMED).map(({ token, weight }) => `${token} (${short(weight, 3)})`);
    return `${own} ${side === "query" ? "attends most to" : "is attended to most by"} ${listed(words)}`;
  }

  /** Arrow keys move between tokens and sides. */
  move(event, side, i) {
    const { query, key } = this.texts;
    const to = {
      ArrowDown: this.texts[side][i + 1],
      ArrowUp: this.texts[side][i - 1],
      ArrowRight: key[Math.min(i, key.length - 1)],
      ArrowLeft: query[Math.min(i, query.length - 1)],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    event.target.setAttribute("tabindex", -1);
    to.setAttribute("tabindex", 0);
    to.focus();
  }
}

function otherSide(side) {
  return side === "query" ? "key" : "query";
}
