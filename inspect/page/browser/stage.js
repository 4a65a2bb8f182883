// The current operation, in the middle of the page: at the top, the inputs and the result; below, each under its value,
// the gradients of the inputs computed from the result's.

const MOST_LINKS = 4;
const MOST_PARTS = 4; // terms of a sum shown individually

function renderStage(step, moment) {
  const stage = place("stage");
  if (!moment) {
    stage.replaceChildren(element("p", { text: "The tape recorded nothing in this step." }));
    return;
  }
  const { node, backward } = moment;
  const inputs = node.inputs.map((input) => step.nodes[input]);
  const flow = element(
    "div",
    { class: "flow" },
    halfHeading("Forward", "→", node.formula ? [formulaElement(step, node, node.formula)] : [], !backward),
    ...inputs.map((_, position) => inputCell(step, node, position, backward)),
    arrow("forward", node, !backward),
    outputCell(step, node, backward),
    ...backwardHalf(step, node, backward),
  );
  flow.style.setProperty("--inputs", Math.max(1, inputs.length));
  const about = [...new Set([node, ...inputs])];
  fill(
    stage,
    stageTitle(step, moment),
    ...remarksOn(step, about),
    moment.number === 0 ? introduction(step) : null,
    flow,
    ...bars(step, node),
    ...general(step, node),
    legend(),
  );
}

function stageTitle(step, moment) {
  const { node, backward } = moment;
  const choices = placeChoices([node, ...node.inputs.map((input) => step.nodes[input])], render);
  return element(
    "header",
    { class: "now" },
    element(
      "h2",
      {},
      element("span", {
        class: `direction ${backward ? "backward" : "forward"}`,
        text: backward ? "← backward" : "→ forward",
      }),
      node.operation,
      node.layer ? element("small", { text: `in ${node.layer}` }) : null,
    ),
    element("p", { class: "caption", text: describeMoment(step, moment) }),
    choices.length ? element("div", { class: "choices" }, "Shown:", ...choices) : null,
    node.attention
      ? element("button", { text: "Show heads and tokens", onclick: () => showAttention(step, node) })
      : null,
  );
}

/** An introduction, shown when the page opens. */
function introduction(step) {
  const loss = lossOf(step);
  const swept = step.moments.length > step.operations.length;
  const operations = counted(step.operations.length, "operation");
  const forward = `Forward, ${loss?.name ?? "all of this"} is computed by ${operations}.`;
  const backward = swept
    ? " Backward, from the last to the first, the rule of each operation computes the gradients of its inputs from " +
      "the gradient of its result. Each element of dX, the gradient of a value X, is the derivative of the loss with " +
      "respect to the same element of X."
    : "";
  return element("p", { class: "introduction", text: `${forward}${backward} Press Play, or → to step.` });
}

function halfHeading(text, sign, formulas, lit) {
  return element(
    "div",
    { class: `heading ${text.toLowerCase()} ${lit ? "lit" : "later"}` },
    element("h3", {}, element("span", { text: sign, "aria-hidden": "true" }), text),
    element("div", { class: "formulas" }, ...formulas),
  );
}

/** A cell of the forward or backward half. Columns of the wide layout: the inputs, the arrow, the result. */
function cellIn(column, half, lit, ...children) {
  const cell = element("div", { class: `cell ${half}${half === "backward" && !lit ? " later" : ""}` }, ...children);
  cell.style.setProperty("--column", column);
  return cell;
}

function arrow(half, node, lit) {
  const sign = element("span", { text: half === "forward" ? "→" : "←" });
  const cell = element(
    "div",
    { class: `arrow ${half} ${lit ? "lit" : "later"}`, "aria-hidden": "true" },
    sign,
    element("small", { text: node.operation }),
  );
  cell.style.setProperty("--column", node.inputs.length + 1);
  return cell;
}

/** The headings of an operation's cards: the formula's symbols if it is shown with symbols, otherwise names. */
function headingsOf(step, node, value, symbol) {
  const nameless = value.kind === "constant" && !value.name && !value.short;
  const byName = !symbol || !node.formula || (formulaOf(step, node, node.formula).named && !nameless);
  if (byName) return { value: { heading: value.label }, gradient: { heading: gradientLabel(value) } };
  return {
    value: { heading: symbol, subtitle: value.label },
    gradient: { heading: gradientName(symbol), subtitle: `gradient of ${value.label}` },
  };
}

function boxOf(node) {
  return node.inputs.length < 3 ? WIDE_CARD_BOX : CARD_BOX;
}

function inputCell(step, node, position, backward) {
  const input = step.nodes[node.inputs[position]];
  const headings = headingsOf(step, node, input, node.symbols.inputs?.[position]);
  const options = {
    ...headings.value,
    box: boxOf(node),
    lit: backward ? "" : "read",
    missing: "Its value was not kept.",
  };
  const from =
    input.kind === "operation"
      ? element("p", { class: "origin" }, "computed by ", momentLink(input.forwardMoment, input.operation))
      : element("p", {
          class: "origin",
          text: input.layer || input.name.includes(".") ? `${input.kind} ${input.name}` : input.kind,
        });
  return cellIn(position + 1, "forward", !backward, card(input, input.value, { name: input.label }, options), from);
}

function outputCell(step, node, backward) {
  const headings = headingsOf(step, node, node, node.symbols.inputs && node.symbols.result);
  const options = {
    ...headings.value,
    box: boxOf(node),
    lit: backward ? "" : "written",
    missing: "Its value was not kept.",
  };
  const readers = [...new Set(node.readers.map((reader) => reader.node))];
  const links = linksTo(readers.map((reader) => reader.forwardMoment));
  const to = readers.length ? element("p", { class: "origin" }, "read by ", ...links) : null;
  return cellIn(
    node.inputs.length + 2,
    "forward",
    !backward,
    card(node, node.value, { name: node.label }, options),
    to,
  );
}

/** Links to the first moments, and the number of others. */
function linksTo(moments) {
  const links = moments.slice(0, MOST_LINKS).map((moment) => momentLink(moment));
  return moments.length > MOST_LINKS ? [...links, ` and ${moments.length - MOST_LINKS} more`] : links;
}

/** The backward half: rules, the gradients of the inputs, at the right the result's gradient, then sums. */
function backwardHalf(step, node, backward) {
  if (step.loss < 0) return [];
  if (!node.reached) {
    const none = element("p", { class: "note", text: whyNotReached(step, node) });
    return [halfHeading("Backward", "←", [none], backward)];
  }
  // Constants have no gradient.
  const asked = (_, i) => !node.symbols.inputs || step.nodes[node.inputs[i]].kind !== "constant";
  const rules = node.rulesHere.filter(asked).filter(Boolean);
  const inputs = [...new Set(node.inputs.map((input) => step.nodes[input]))];
  return [
    halfHeading(
      "Backward",
      "←",
      rules.map((rule) => formulaElement(step, node, rule)),
      backward,
    ),
    ...meaningOf(step, node),
    ...node.inputs.map((_, position) => gradientCell(step, node, position, backward)),
    arrow("backward", node, backward),
    incomingCell(step, node, backward),
    ...(backward ? inputs.map((input) => sumOf(step, node, input)) : []),
  ];
}

/** The meaning of the result's gradient, its origin, and the gradients computed from it. */
function meaningOf(step, node) {
  const loss = lossOf(step);
  const called = (value, symbol) => {
    const { value: own, gradient } = headingsOf(step, node, value, symbol);
    return { value, own: own.heading, gradient: gradient.heading };
  };
  const inputs = node.inputs.map((input, i) => called(step.nodes[input], node.symbols.inputs?.[i]));
  const made = inputs.filter(({ value }, i) => value.gradient && inputs.findIndex((x) => x.value === value) === i);
  const said = node.number === step.loss ? made.shift() : called(node, node.symbols.inputs && node.symbols.result);
  if (!loss || !said) return [];
  const tells =
    `Each element of ${said.gradient} is the derivative of ${loss.name} with respect to the same element of ` +
    `${said.own}: the change of the loss per unit of increase.`;
  const passedOn = made.length
    ? ` From it, the rule of ${node.operation} computes ${listed(made.map(({ gradient }) => gradient))}, the ` +
      `${made.length > 1 ? "gradients" : "gradient"} of ${listed(made.map(({ own }) => own))}.`
    : "";
  const colours = " Orange: increasing the element increases the loss; blue: it decreases the loss.";
  return [element("p", { class: "meaning", text: tells + passedOn + colours }), equationsOf(step, said.value)];
}

function equationsOf(step, node) {
  const all = gradientEquations(step, node);
  if (!all.length) return null;
  const formulas = element("code", { text: all.join(",   ") });
  return element("p", { class: "meaning equations" }, `Where ${gradientLabel(node)} comes from: `, formulas);
}

function kindOfGradient(step, node) {
  return { name: gradientLabel(node), of: node.label, loss: lossOf(step)?.name };
}

/** This operation's contribution to the gradient of an input. */
function gradientCell(step, node, position, backward) {
  const input = step.nodes[node.inputs[position]];
  const kept = flowInto(step, node, position);
  // The page may omit contributions to save space.
  const whole = !kept && !node.contributions && input.gradient ? { part: input.gradient, count: 1 } : null;
  const flow = kept ?? whole;
  if (!flow) {
    const text = input.gradient ? "It gets no gradient from this operation." : whyNoGradient(step, input);
    return cellIn(position + 1, "backward", backward, element("p", { class: "note", text }));
  }
  const headings = headingsOf(step, node, input, node.symbols.inputs?.[position]);
  const { place: at, count } = flow;
  const missing = whole ? { subtitle: `all of ${gradientLabel(input)}; its parts were not kept` } : {};
  const subtitle = count > 1 ? { subtitle: `part ${at + 1} of ${count} of ${gradientLabel(input)}` } : {};
  const options = { ...headings.gradient, ...subtitle, ...missing, box: boxOf(node), lit: backward ? "written" : "" };
  return cellIn(position + 1, "backward", backward, card(input, flow.part, kindOfGradient(step, input), options));
}

/** The gradient of the result, and the operations it comes from. */
function incomingCell(step, node, backward) {
  const headings = headingsOf(step, node, node, node.symbols.inputs && node.symbols.result);
  const options = { ...headings.gradient, box: boxOf(node), lit: backward ? "read" : "", missing: "It was not kept." };
  const from = [...new Set(partsOf(node).map((part) => part.node.backwardMoment))];
  const origin =
    node.number === step.loss
      ? element("p", { class: "origin", text: "the backward pass starts here, with 1" })
      : element("p", { class: "origin" }, "comes from ", ...linksTo(from));
  const shown = card(node, node.gradient, kindOfGradient(step, node), options);
  return cellIn(node.inputs.length + 2, "backward", backward, shown, origin);
}

/** The sum of a gradient's contributions, with a common color scale; null for a value read only once. */
function sumOf(step, node, input) {
  const parts = partsOf(input);
  const last = parts.findLastIndex((part) => part.node === node);
  if (parts.length < 2 || last < 0) return null;
  const first = parts.findIndex((part) => part.node === node);
  const sumTo = (end) => addArrays(parts.slice(0, end).map(({ part }) => part));
  const total = sumTo(last + 1);
  const limit = Math.max(magnitude(total), ...parts.map(({ part }) => magnitude(part)));
  const kind = kindOfGradient(step, input);
  const shown = (array, heading, lit) => card(input, array, kind, { heading, limit, lit });
  const term = ({ node: from, part }, i) => {
    const heading = `from ${from.short ?? from.operation}`;
    return i > last ? awaitedCard(heading) : shown(part, heading, i >= first ? "written part" : "");
  };
  // Shows the preceding parts as one if there are many.
  const many = parts.length > MOST_PARTS;
  const before = many && first > 0 ? [shown(sumTo(first), "so far", "")] : [];
  const terms = many ? parts.slice(first, last + 1).map((part, i) => term(part, first + i)) : parts.map(term);
  const done = last === parts.length - 1 && !isIncomplete(input);
  const row = element(
    "div",
    { class: "sum backward" },
    element("p", {
      text: `${input.label} is read ${parts.length} times, so its gradient is a sum of ${parts.length} parts:`,
    }),
  );
  [...before, ...terms].forEach((each, i) => row.append(...(i ? [signBetween("+")] : []), each));
  row.append(signBetween("="), shown(total, done ? kind.name : `${kind.name} so far`, "written"));
  return row;
}

/** A part of a sum that the backward pass has not computed yet. */
function awaitedCard(heading) {
  return element(
    "div",
    { class: "card gradient awaited" },
    element("strong", { text: heading }),
    element("p", { class: "note", text: "not yet computed" }),
  );
}

function signBetween(text) {
  return element("span", { class: "sign", text });
}

/** The findings about these values. */
function remarksOn(step, nodes) {
  return findingsAbout(step, nodes)
    .filter(({ text }) => text !== step.opened_at?.text) // already shown above
    .map(({ text, wrong }) => element("p", { class: wrong ? "finding wrong" : "finding", text }));
}

/** The formulas with symbols, if the ones above have names. */
function general(step, node) {
  const all = [node.formula, ...node.rules].filter(Boolean);
  if (!all.length || !formulaOf(step, node, node.formula).named) return [];
  const formulas = all.map((formula) => element("code", { text: formula }));
  return [element("p", { class: "general" }, `${node.operation} in general: `, ...formulas)];
}

/** Bars of time and bytes relative to the step's largest, if the tape measured them. */
function bars(step, node) {
  const rows = [
    ["forward", "forward_ns", formatTime],
    ["backward", "backward_ns", formatTime],
    ["saved for backward", "saved_bytes", formatBytes],
  ].filter(([, field]) => node[field] !== undefined);
  if (!rows.length) return [];
  const list = element("dl", { class: "bars" });
  for (const [name, field, format] of rows) {
    const all = step.operations.map((other) => other[field] ?? 0);
    const bar = element("span", { class: `bar ${name}`, "aria-hidden": "true" });
    bar.style.width = `${(100 * node[field]) / Math.max(...all, 1)}%`;
    const text = `${format(node[field])}, ${formatShare(node[field], Math.max(sum(all), 1))} of the step`;
    list.append(element("dt", { text: name }), element("dd", {}, bar, element("span", { text })));
  }
  return [list];
}

function legend() {
  const text =
    "Heat maps: orange is positive, blue negative, red NaN or infinite. Point at a cell to see its number; click the " +
    "name of a card to enlarge it. In formulas, ⊙ multiplies elementwise, Σ sums, and ᵀ transposes. Keys: space plays and " +
    "pauses, ← and → step, ↑ and ↓ move in the list on the left.";
  return element("p", { class: "legend", text });
}
