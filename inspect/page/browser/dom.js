// Creates all elements. Text is inserted as text, so names and labels are never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. Properties are attributes, except "text" for its text, and "onclick" and the like for listeners.
 * Children are nodes or strings. Omits properties and children with a value of null, undefined or false.
 */
function element(tag, properties = {}, ...children) {
  return furnish(document.createElement(tag), properties, children);
}

/** The same for an SVG element. */
function svg(tag, properties = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), properties, children);
}

/** Replaces a node's children, omitting null, undefined and false. */
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

/** The element with this id in page.html. */
function place(id) {
  return document.getElementById(id);
}

/** A labeled menu; `options` are [value, text]. Calls `choose` with the selected value, a string. */
function choice(label, options, chosen, choose) {
  const select = element("select", { onchange: () => choose(select.value) });
  for (const [value, text] of options) select.append(element("option", { value, text }));
  select.value = chosen;
  return element("label", { class: "choice" }, label, select);
}

/**
 * A table. A cell is a string, a number, a node, or the properties {text, class, ...} of an element. The first cell of
 * a row is its header.
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

/** Announces text to screen readers. */
function announce(text) {
  place("announcement").textContent = text;
}

/** Shows lines of text next to a point {x, y} of the window; hides the tooltip if `at` is null. */
function tooltip(lines, at) {
  const box = place("tooltip");
  box.hidden = !at;
  if (!at) return;
  box.replaceChildren(...lines.map((line, i) => element("div", { text: line, class: i === 0 ? "number" : null })));
  // A modal dialog covers everything except its own children.
  const host = document.querySelector("dialog[open]") ?? document.body;
  if (box.parentNode !== host) host.append(box);
  const x = Math.min(at.x + 14, window.innerWidth - box.offsetWidth - 8);
  const below = at.y + 18;
  const y = below + box.offsetHeight > window.innerHeight ? at.y - box.offsetHeight - 10 : below;
  box.style.left = `${Math.max(4, x)}px`;
  box.style.top = `${Math.max(4, y)}px`;
}
