// Formats numbers, shapes, times and bytes.

/** The shortest digits that identify this float32. */
function exact(x) {
  if (!Number.isFinite(x)) return notFinite(x);
  for (let digits = 1; digits < 9; ++digits) {
    const text = x.toPrecision(digits);
    if (Math.fround(Number(text)) === x) return plain(Number(text));
  }
  return plain(Number(x.toPrecision(9)));
}

/** Rounds to significant digits; a missing statistic (null) is a dash. */
function short(x, digits = 4) {
  if (x === null || x === undefined) return "–";
  if (!Number.isFinite(x)) return notFinite(x);
  return plain(Number(x.toPrecision(digits)));
}

function plain(x) {
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return x.toExponential().replace("e+", "e");
  return String(x);
}

function notFinite(x) {
  if (Number.isNaN(x)) return "NaN";
  return x > 0 ? "∞" : "-∞";
}

/** "3 numbers", "1 number", "12,000 numbers" */
function counted(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

function formatShape(shape) {
  return `(${shape.join(", ")})`;
}

function formatTime(ns) {
  const [unit, size] = [
    ["s", 1e9],
    ["ms", 1e6],
    ["µs", 1e3],
    ["ns", 1],
  ].find(([, least]) => ns >= least) ?? ["ns", 1];
  return `${short(ns / size, 3)} ${unit}`;
}

function formatBytes(bytes) {
  const [unit, size] = [
    ["MiB", 2 ** 20],
    ["KiB", 2 ** 10],
  ].find(([, least]) => bytes >= least) ?? ["B", 1];
  return `${short(bytes / size, 3)} ${unit}`;
}

function formatShare(part, whole) {
  if (part === 0) return "0%";
  const percent = (100 * part) / whole;
  return percent < 0.1 ? "under 0.1%" : `${short(percent, 3)}%`;
}

function product(numbers) {
  return numbers.reduce((a, b) => a * b, 1);
}

function sum(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}

/** "a", "a and b", "a, b and c" */
function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
