// The operation under way, in the middle of the page: above, how its inputs become its result; below, how the gradient of
// its result becomes those of its inputs, each under the value that it belongs to.

function renderStage(step, moment) {
  const stage = place("stage");
  if (!moment) {
    stage.replaceChildren(element("p", { text: "Nothing was recorded in this step." }));
    return;
  }
  const { node, backward } = moment;
  const inputs = node.inputs.map((input) => step.nodes[input]);
  const flow = element("div", { class: "flow" });
  flow.style.setProperty("--inputs", Math.max(1, inputs.length));
  flow.append(
    heading("Forward", "→", node.formula ? [formulaElement(step, node, node.formula)] : [], !backward),
    ...inputs.map((input, position) => valueCell(step, node, input, position, backward)),
    arrow("forward", node, !backward),
    outputCell(node, backward),
    ...backwardHalf(step, node, inputs, backward),
  );
  stage.replaceChildren(title(step, moment), ...remarks(step, [node, ...inputs]), flow, ...bars(step, node), general(node, step));
}

function title(step, { node, backward }) {
  const choices = placeChoices([node, ...node.inputs.map((input) => step.nodes[input])], render);
  return element(
    "header",
    { class: "now" },
    element(
      "h2",
      {},
      element("span", { class: backward ? "direction backward" : "direction forward", text: backward ? "← backward" : "→ forward" }),
      node.operation,
      node.layer ? element("small", { text: `in ${node.layer}` }) : null,
    ),
    element("p", { class: "caption", text: describeMoment(step, backward ? node.backwardMoment : node.forwardMoment) }),
    choices.length ? element("div", { class: "choices" }, "Shown:", ...choices) : null,
  );
}

function heading(text, sign, formulas, lit) {
  const classes = ["heading", text.toLowerCase(), lit ? "lit" : "later"].join(" ");
  return element(
    "div",
    { class: classes },
    element("h3", {}, element("span", { text: sign, "aria-hidden": "true" }), text),
    element("div", { class: "formulas" }, ...formulas),
  );
}

/** Puts a cell in its column of the wide layout. */
function inColumn(cell, column) {
  cell.style.setProperty("--column", column);
  return cell;
}

function arrow(kind, node, lit) {
  const sign = kind === "forward" ? "→" : "←";
  const cell = element(
    "div",
    { class: `arrow ${kind} ${lit ? "lit" : "later"}`, "aria-hidden": "true" },
    element("span", { text: sign }),
    element("small", { text: node.operation }),
  );
  return inColumn(cell, node.inputs.length + 1);
}

/** A symbol of the formula beside the value's name, where the formula is shown with symbols. */
function headingOf(node, position, step) {
  const value = step.nodes[node.inputs[position]];
  const symbol = node.symbols.inputs?.[position];
  return symbol && !formulaOf(step, node, node.formula).named ? `${symbol}: ${value.label}` : value.label;
}

function valueCell(step, node, input, position, backward) {
  const cell = element(
    "div",
    { class: "cell forward" },
    card(input, input.value, { name: input.label }, {
      heading: headingOf(node, position, step),
      lit: backward ? "" : "read",
      missing: "Its value was not kept.",
    }),
    origin(input),
  );
  return inColumn(cell, position + 1);
}

function origin(input) {
  if (input.kind !== "operation") return element("p", { class: "origin", text: input.kind });
  return element("p", { class: "origin" }, `made by ${input.operation} `, momentLink(input.forwardMoment));
}

function outputCell(node, backward) {
  const options = { lit: backward ? "" : "written", missing: "Its value was not kept." };
  const readers = [...new Set(node.readers.map((reader) => reader.node))];
  const shown = readers.slice(0, 4).map((reader) => momentLink(reader.forwardMoment));
  const rest = readers.length > shown.length ? ` and ${readers.length - shown.length} more` : null;
  const cell = element(
    "div",
    { class: "cell forward" },
    card(node, node.value, { name: node.label }, options),
    readers.length ? element("p", { class: "origin" }, "read by ", ...shown, rest) : null,
  );
  return inColumn(cell, node.inputs.length + 2);
}

/** The lower half: rules, then the gradients of the inputs and, at the right, the one that comes in. */
function backwardHalf(step, node, inputs, backward) {
  if (!node.reached) {
    const none = step.loss < 0 ? "There was no sweep." : `The sweep does not come here: the loss does not depend on ${node.label}.`;
    return [heading("Backward", "←", [element("p", { class: "note", text: none })], backward)];
  }
  const rules = node.rules.filter(Boolean).map((rule) => formulaElement(step, node, rule));
  return [
    heading("Backward", "←", rules, backward),
    ...inputs.map((input, position) => inColumn(gradientCell(step, node, input, position, backward), position + 1)),
    arrow("backward", node, backward),
    inColumn(incomingCell(step, node, backward), node.inputs.length + 2),
  ];
}

function kindOfGradient(step, node) {
  return { name: gradientLabel(node), of: node.label, loss: lossOf(step)?.name };
}

/** The gradient of an input: one card, or the sum so far, this operation's part, and both, in one scale of colours. */
function gradientCell(step, node, input, position, backward) {
  const cell = element("div", { class: `cell backward ${backward ? "" : "later"}` });
  const flow = flowInto(step, node, position);
  const kind = kindOfGradient(step, input);
  if (!flow) {
    cell.append(element("p", { class: "note", text: input.gradient ? "Nothing is passed on to it." : whyNoGradient(input) }));
    return cell;
  }
  const lit = backward ? "written" : "";
  if (flow.count === 1) {
    cell.append(card(input, flow.part, kind, { lit }));
    return cell;
  }
  const limit = Math.max(...[flow.before, flow.part, flow.after].filter(Boolean).map(magnitude));
  const { place: at, count } = flow;
  if (flow.before) cell.append(card(input, flow.before, kind, { heading: `${kind.name} so far`, limit }), sign("+"));
  cell.append(card(input, flow.part, kind, { heading: `part ${at + 1} of ${count}`, lit: `${lit} part`, limit }));
  if (flow.before) cell.append(sign("="), card(input, flow.after, kind, { heading: at + 1 === count ? kind.name : `${kind.name}, ${at + 1} of ${count}`, lit, limit }));
  const uses = at + 1 === count ? "all parts are there" : `${count - at - 1} more to come`;
  cell.append(element("p", { class: "origin", text: `${input.label} is read ${count} times: its gradient is a sum; ${uses}` }));
  return cell;
}

function sign(text) {
  return element("div", { class: "sign", text });
}

/** The gradient of the result, and which operations it came from. */
function incomingCell(step, node, backward) {
  const cell = element(
    "div",
    { class: `cell backward ${backward ? "" : "later"}` },
    card(node, node.gradient, kindOfGradient(step, node), { lit: backward ? "read" : "", missing: "It was not kept." }),
  );
  const parts = partsOf(step, node);
  if (node.number === step.loss) cell.append(element("p", { class: "origin", text: "the sweep starts here, with 1" }));
  else if (parts.length)
    cell.append(element("p", { class: "origin" }, "comes from ", ...links(parts.map((part) => part.node.backwardMoment))));
  return cell;
}

function links(moments) {
  return [...new Set(moments)].map(momentLink);
}

/** What is conspicuous at these values, in words. */
function remarks(step, nodes) {
  return findingsOf(step)
    .filter((finding) => nodes.includes(finding.node))
    .map((finding) => element("p", { class: finding.wrong ? "finding wrong" : "finding", text: finding.text }));
}

/** The formula as it is in general, below one that has names put in. */
function general(node, step) {
  const all = [node.formula, ...node.rules].filter(Boolean);
  if (!all.length || !formulaOf(step, node, node.formula).named) return element("p", { class: "general" });
  return element("p", { class: "general" }, `${node.operation} in general: `, ...all.map((formula) => element("code", { text: formula })));
}

/** Time and bytes, when the tape has measured them, as shares of the largest in the step. */
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
    const share = formatShare(node[field], Math.max(sum(all), 1));
    list.append(element("dt", { text: name }), element("dd", {}, bar, element("span", { text: `${format(node[field])}, ${share} of the step's` })));
  }
  return [list];
}
