// Replaces the symbols in an operation's formula by the names in this step.
//
// "y = x Wᵀ" is the formula of a linear without bias; if W is named Wq and the result Q, it becomes "Q = X Wqᵀ".
// A symbol with a d before it is its gradient.

const LONGEST_NAME = 8; // of a value, for use in formulas
const LONGEST_EXPRESSION = 16; // of an unnamed value's formula, for use as its name

/**
 * The symbols of an operation's formula: {result, inputs}. `inputs` is null if the rules do not define them; an input
 * with the rule "" is undefined.
 */
function symbolsOf(node) {
  const left = (text) => text.match(/^\s*([A-Za-zα-ω]\w*)[^=]*=/)?.[1];
  const result = left(node.formula) ?? "y";
  const inputs = node.rules.map((rule) => left(rule)?.replace(/^d/, ""));
  const told = node.rules.length === node.inputs.length && node.rules.every((rule, i) => rule === "" || inputs[i]);
  return { result, inputs: told ? inputs : null };
}

/** Splits a formula into strings and {symbol, gradient, input}; `input` is the input's index, -1 for the result. */
function parseFormula(formula, symbols) {
  const inputs = symbols.inputs ?? [];
  const all = [...inputs, symbols.result].filter(Boolean).sort((a, b) => b.length - a.length);
  const parts = [];
  let end = 0;
  const pattern = new RegExp(`(?<![A-Za-zα-ω])(d?)(${all.join("|")})(?![A-Za-z0-9α-ω_])`, "g");
  for (const match of formula.matchAll(pattern)) {
    parts.push(formula.slice(end, match.index));
    parts.push({ symbol: match[2], gradient: match[1] === "d", input: inputs.indexOf(match[2]) });
    end = match.index + match[0].length;
  }
  parts.push(formula.slice(end));
  return parts.filter((part) => part !== "");
}

/** The name of a value's gradient: dS, or d(Q Kᵀ) of an expression. */
function gradientName(name) {
  return /[\s()ᵀ#._]/.test(name) ? `d(${name})` : `d${name}`;
}

/** A name to replace a symbol between `before` and `after`, in parentheses if it would be ambiguous. */
function bracketed(name, before, after) {
  const alone = before.endsWith("(") && /^[,)]/.test(after);
  const negative = /^[-−]/.test(name) && before.trim() !== "" && !/[(=]\s*$/.test(before);
  const tight = /^[ᵀ²^]/.test(after) && /[\sᵀ²]/.test(name);
  return !alone && (/\s/.test(name) || negative || tight) ? `(${name})` : name;
}

/** Simplifies (Kᵀ)ᵀ to K: {text, rest}, the name and the following text without ᵀ; null if not transposed twice. */
function transposedTwice(name, after) {
  const simple = name.match(/^([A-Za-zα-ω]\w*)ᵀ$/);
  return simple && after.startsWith("ᵀ") ? { text: simple[1], rest: after.slice(1) } : null;
}

/** The parts of a formula with names instead of symbols; null if a value has no short name. */
function withNames(formula, names) {
  const named = [];
  const parts = [...formula];
  for (const [i, part] of parts.entries()) {
    if (typeof part === "string") {
      named.push(part);
      continue;
    }
    const name = part.input < 0 ? names.result : names[part.input];
    if (!name) return null;
    const beside = (other) => (typeof other === "string" ? other : "");
    const after = beside(parts[i + 1]);
    const twice = part.gradient ? null : transposedTwice(name, after);
    if (twice) parts[i + 1] = twice.rest;
    const text = part.gradient ? gradientName(name) : (twice?.text ?? bracketed(name, beside(parts[i - 1]), after));
    named.push({ ...part, text, transposed: Boolean(twice) });
  }
  return named;
}

function formulaText(parts) {
  return parts
    .map((part) => (typeof part === "string" ? part : (part.text ?? (part.gradient ? "d" : "") + part.symbol)))
    .join("");
}

/**
 * Sets each node's `short` name for formulas, or null: its own name, a scalar constant's number, or an unnamed value's
 * formula, such as Kᵀ (then `derived` is true). An unnamed loss is "loss".
 */
function nameForFormulas(nodes, loss) {
  for (const node of nodes) {
    node.symbols = symbolsOf(node);
    node.short = node.name && node.name.length <= LONGEST_NAME ? node.name : null;
    if (node.name) continue;
    if (node.number === loss) {
      node.short = "loss";
      continue;
    }
    if (node.kind === "constant" && node.value && product(node.shape) === 1)
      node.short = short(numbersOf(node.value)[0]);
    if (node.kind !== "operation" || !node.symbols.inputs) continue;
    const right = node.formula.replace(/^[^=]*=\s*/, "");
    const named = withNames(
      parseFormula(right, node.symbols),
      node.inputs.map((input) => nodes[input].short),
    );
    const text = named && formulaText(named);
    if (text && text.length <= LONGEST_EXPRESSION) Object.assign(node, { short: text, derived: true });
  }
}

/** A value's name in a formula. Unnamed constants keep the symbol. */
function nameIn(value, symbol) {
  return value.short ?? (value.kind === "constant" && !value.name ? symbol : null);
}

/** A node's formula, with names instead of symbols if all have short ones: {parts, named}. */
function formulaOf(step, node, formula) {
  // Avoids "Kᵀ = Kᵀ" for a value named by its formula.
  const right = formula === node.formula && node.derived ? formula.replace(/^[^=]*=\s*/, "") : formula;
  const parts = parseFormula(right, node.symbols);
  const names = node.inputs.map((input, i) => nameIn(step.nodes[input], node.symbols.inputs?.[i]));
  names.result = node.short ?? node.symbols.result;
  const named = node.symbols.inputs && withNames(parts, names);
  return { parts: named || parts, named: Boolean(named) && formulaText(named) !== formulaText(parts) };
}

function transposedShape(shape) {
  return [...shape.slice(0, -2), ...shape.slice(-2).reverse()];
}

const SUPERSCRIPT = /^[ᵀ²]+/; // kept with the preceding value

/** The element of a formula, with the shape below each value. */
function formulaElement(step, node, formula) {
  const { parts } = formulaOf(step, node, formula);
  return element(
    "span",
    { class: "formula" },
    ...parts.map((part, i) => {
      if (typeof part === "string") {
        const text = i > 0 ? part.replace(SUPERSCRIPT, "") : part;
        return text === "" ? null : element("span", { class: "operator", text });
      }
      const value = part.input < 0 ? node : step.nodes[node.inputs[part.input]];
      const raised = typeof parts[i + 1] === "string" ? (parts[i + 1].match(SUPERSCRIPT)?.[0] ?? "") : "";
      return element(
        "span",
        { class: part.gradient ? "value gradient" : "value" },
        element("span", { text: formulaText([part]) + raised }),
        element("small", { text: formatShape(part.transposed ? transposedShape(value.shape) : value.shape) }),
      );
    }),
  );
}
