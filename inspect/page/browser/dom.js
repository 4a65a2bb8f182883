// Elements are made here and nowhere else. Text goes in as text, so that no name or label is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. Properties are attributes, but for "text", its text, and "onclick" and the like, listeners; those
 * that are null, undefined or false are left out. So are such children; other children are nodes or strings.
 */
function element(tag, properties = {}, ...children) {
  return furnish(document.createElement(tag), properties, children);
}

/** The same, of SVG. */
function svg(tag, properties = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), properties, children);
}

/** Puts children in place of those that a node has; null, undefined and false are left out. */
function fill(node, ...children) {
  node.replaceChildren(...children.filter(given));
}

function given(value) {
  return value !== null && value !== undefined && value !== false;
}

function furnish(node, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (!given(value)) continue;
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter(given));
  return node;
}

/** The element of page.html with that id. */
function place(id) {
  return document.getElementById(id);
}

/** A labelled choice; `options` are [value, text]. Calls `choose` with the value chosen, a string. */
function choice(label, options, chosen, choose) {
  const select = element("select", { onchange: () => choose(select.value) });
  for (const [value, text] of options) select.append(element("option", { value, text }));
  select.value = chosen;
  return element("label", { class: "choice" }, label, select);
}

/**
 * A table; a cell is a string, a number, or {text, class, ...} for an element's properties. The first of a row heads
 * it.
 */
function table(caption, heads, rows) {
  const cell = (content, tag, properties) =>
    content instanceof Node
      ? element(tag, properties, content)
      : element(tag, { ...properties, ...(typeof content === "object" ? content : { text: content }) });
  return element(
    "table",
    {},
    element("caption", { text: caption }),
    element("thead", {}, element("tr", {}, ...heads.map((head) => cell(head, "th", { scope: "col" })))),
    element(
      "tbody",
      {},
      ...rows.map((row) =>
        element(
          "tr",
          {},
          ...row.map((content, i) => (i === 0 ? cell(content, "th", { scope: "row" }) : cell(content, "td", {}))),
        ),
      ),
    ),
  );
}

/** Says something to those who hear the page. */
function announce(text) {
  place("announcement").textContent = text;
}

/** Shows text beside a point of the window; `at` is {x, y}, and none hides it. */
function tooltip(lines, at) {
  const box = place("tooltip");
  box.hidden = !at;
  if (!at) return;
  box.replaceChildren(...lines.map((line, i) => element("div", { text: line, class: i === 0 ? "number" : null })));
  // A modal dialog lies above everything but its own children.
  const host = document.querySelector("dialog[open]") ?? document.body;
  if (box.parentNode !== host) host.append(box);
  const x = Math.min(at.x + 14, window.innerWidth - box.offsetWidth - 8);
  const below = at.y + 18;
  const y = below + box.offsetHeight > window.innerHeight ? at.y - box.offsetHeight - 10 : below;
  box.style.left = `${Math.max(4, x)}px`;
  box.style.top = `${Math.max(4, y)}px`;
}
