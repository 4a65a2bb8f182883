// The list of operations at the left: a foldable tree of layers. Arrow keys move in it; Enter shows an operation,
// Shift+Enter its backward half.

/**
 * The layers initially open: all of a short step, or the outer ones of a long step, except for repeated layers; plus
 * the ones containing the page's starting point.
 */
function openAtFirst(step) {
  const open = new Set();
  const isShort = step.operations.length <= 40;
  const start = nodeOfTrouble(step);
  const visit = (items, depth) => {
    for (const item of items) {
      if (!item.children) continue;
      if ((!item.repeats && (isShort || depth === 0)) || item.operations.includes(start)) open.add(item.layer);
      visit(item.children, depth + 1);
    }
  };
  visit(step.tree, 0);
  return open;
}

/** Builds the tree of a step; lightTree() then highlights the current operation. */
function renderTree(step) {
  const root = element("ul", { role: "tree", "aria-label": "Operations", onkeydown: (event) => treeKey(event) });
  root.append(...step.tree.map((item, i) => treeItem(step, item, 1, i === 0)));
  fill(place("tree"), root);
}

function treeItem(step, item, level, first) {
  const node = element("li", { role: "treeitem", "aria-level": level, tabindex: first ? 0 : -1 });
  node.item = item;
  const row = element("div", { class: "row" });
  row.style.setProperty("--level", level);
  row.append(...(item.operation ? operationRow(step, item) : layerRow(item)));
  row.addEventListener("click", (event) => {
    focusItem(node, false);
    activate(node, event.shiftKey);
  });
  node.append(row);
  if (item.children) {
    node.setAttribute("aria-expanded", String(state.open.has(item.layer)));
    node.append(
      element("ul", { role: "group" }, ...item.children.map((child) => treeItem(step, child, level + 1, false))),
    );
  }
  return node;
}

function layerRow(item) {
  const times = item.repeats ? element("span", { class: "times", text: `${item.repeats} ×` }) : null;
  const name = item.repeats ? item.layer : layerName(item);
  const count = item.repeats ? null : element("small", { text: counted(item.operations.length, "operation") });
  return [
    element("span", { class: "fold", "aria-hidden": "true" }),
    element("span", { class: "name", text: name }),
    times,
    count,
  ].filter(Boolean);
}

/** A line for an operation: its formula if short, "P = softmax(S)", otherwise its operation and name. */
function operationRow(step, { operation: node, of }) {
  const { parts, named } = formulaOf(step, node, node.formula);
  const text = named ? formulaText(parts) : [of ?? node.operation, node.name].filter(Boolean).join(" ");
  const line = text.length > 30 ? `${node.name ? `${node.name} = ` : ""}${node.operation}` : text;
  const kind =
    (of && !named) || (named && !node.name) ? element("span", { class: "kind", text: node.operation }) : null;
  const mark = element("span", { class: "mark", "aria-hidden": "true" });
  return [
    mark,
    element("span", { class: "name", text: line }),
    kind,
    element("small", { text: formatShape(node.shape) }),
  ].filter(Boolean);
}

function activate(node, backward) {
  const { item } = node;
  if (item.children) return setOpen(node, node.getAttribute("aria-expanded") !== "true");
  const { forwardMoment, backwardMoment } = item.operation;
  const wanted = backward || currentMoment()?.backward ? (backwardMoment ?? forwardMoment) : forwardMoment;
  return go({ moment: wanted.number });
}

function setOpen(node, open) {
  node.setAttribute("aria-expanded", String(open));
  if (open) state.open.add(node.item.layer);
  else state.open.delete(node.item.layer);
  lightTree(currentStep(), currentMoment());
}

/** Makes an item the tree's only tab stop. */
function focusItem(node, focus = true) {
  for (const other of place("tree").querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
  node.tabIndex = 0;
  if (focus) node.focus();
}

function treeKey(event) {
  const node = event.target.closest("[role=treeitem]");
  if (!node || event.ctrlKey || event.altKey || event.metaKey) return;
  const visible = [...place("tree").querySelectorAll("[role=treeitem]")].filter((other) => other.offsetParent !== null);
  const at = visible.indexOf(node);
  const expanded = node.getAttribute("aria-expanded");
  const keys = {
    ArrowDown: () => visible[at + 1] && focusItem(visible[at + 1]),
    ArrowUp: () => visible[at - 1] && focusItem(visible[at - 1]),
    Home: () => focusItem(visible[0]),
    End: () => focusItem(visible.at(-1)),
    ArrowRight: () => (expanded === "false" ? setOpen(node, true) : expanded && focusItem(visible[at + 1])),
    ArrowLeft: () => {
      const parent = node.parentNode.closest("[role=treeitem]");
      if (expanded === "true") setOpen(node, false);
      else if (parent) focusItem(parent);
    },
    Enter: () => activate(node, event.shiftKey),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  event.stopPropagation();
  keys[event.key]();
}

/** Highlights the current operation, or the folded layer around it, and marks the progress of the story. */
function lightTree(step, moment) {
  const read = new Set(moment?.node.inputs.map((input) => step.nodes[input]));
  for (const item of place("tree").querySelectorAll("[role=treeitem]")) {
    const { operation } = item.item;
    const folded = item.getAttribute("aria-expanded") === "false";
    const current = operation ? operation === moment?.node : folded && item.item.operations.includes(moment?.node);
    const beside = Boolean(operation) && read.has(operation);
    const classes = [
      current ? "current" : beside && "beside",
      (current || beside) && moment.backward && "backward",
      ...progressOf(item.item, moment),
    ];
    const wanted = classes.filter(Boolean).join(" ");
    if (item.className === wanted) continue; // most items; changing a long list is slow
    item.className = wanted;
    if (current) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
  }
  const lit = place("tree").querySelector(".current > .row");
  if (lit?.offsetParent) scrollIntoBox(lit, place("tree"));
}

/** CSS classes: "made" after all operations of a line ran forward, "swept" after their backward steps, if any. */
function progressOf({ operation, operations = [operation] }, moment) {
  const passed = (other) => Boolean(other) && other.number <= (moment?.number ?? -1);
  const swept = operations.filter((node) => node.backwardMoment);
  return [
    operations.every((node) => passed(node.forwardMoment)) && "made",
    swept.length > 0 && swept.every((node) => passed(node.backwardMoment)) && "swept",
  ];
}

/** Scrolls only the box. */
function scrollIntoBox(line, box) {
  const inner = line.getBoundingClientRect();
  const outer = box.getBoundingClientRect();
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top + 40;
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom + 40;
}
