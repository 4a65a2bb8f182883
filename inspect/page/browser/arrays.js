// Arrays of numbers, and the matrices in view: two axes of an array at one index along each other axis.

const decoded = new WeakMap();

/** The stored numbers of an array, decoded on first use: most are never shown. */
function numbersOf(array) {
  let numbers = decoded.get(array);
  if (!numbers) {
    const letters = atob(array.data);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < bytes.length; ++i) bytes[i] = letters.charCodeAt(i);
    numbers = new Float32Array(bytes.buffer);
    decoded.set(array, numbers);
  }
  return numbers;
}

/** An array of the same shape with other numbers and no statistics, such as a partial sum. */
function arrayLike(array, numbers) {
  const result = { shape: array.shape, pooled: array.pooled };
  decoded.set(result, numbers);
  return result;
}

/** The pooling factor along an axis: the number of elements averaged in a stored one. */
function pooledAlong(array, axis) {
  return array.pooled?.[axis] ?? 1;
}

/** The range {from, to} of whole-array indices along an axis averaged in the i-th stored one. */
function placesOf(array, axis, i) {
  const of = pooledAlong(array, axis);
  return { from: i * of, to: i * of + of - 1 };
}

/** The whole-array position of the i-th stored number: {from, to} for each axis, equal unless averaged. */
function placeOf(array, i) {
  return array.shape.map((extent, axis) =>
    placesOf(array, axis, Math.floor(i / product(array.shape.slice(axis + 1))) % extent),
  );
}

/** The cell {row, column} of a view along `axes` containing a whole-array position; null if out of view. */
function cellAt(matrix, axes, whole) {
  const holds = ({ from, to }, axis) => from <= whole[axis].from && whole[axis].from <= to;
  const first = (count, axis, where) => {
    for (let i = 0; i < count; ++i) if (axis < 0 || holds(where(i)[axis], axis)) return i;
    return 0;
  };
  const row = first(matrix.rows, axes.rows, (i) => matrix.where(i, 0));
  const column = first(matrix.columns, axes.columns, (i) => matrix.where(0, i));
  return matrix.where(row, column).every(holds) ? { row, column } : null;
}

/** The sum of arrays of one shape. */
function addArrays(arrays) {
  const total = Float32Array.from(numbersOf(arrays[0]));
  for (const array of arrays.slice(1)) numbersOf(array).forEach((x, i) => (total[i] += x));
  return arrayLike(arrays[0], total);
}

/** The largest finite magnitude: the end of the color scale. */
function magnitude(array) {
  const known = array.statistics;
  if (known && !array.pooled && known.least !== null) return Math.max(Math.abs(known.least), Math.abs(known.largest));
  return numbersOf(array).reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 0);
}

/** A view's initial axes: the last two as rows and columns; negative if missing. */
function lastAxes(shape) {
  return { rows: shape.length - 2, columns: shape.length - 1 };
}

/**
 * The matrix of `array` along two axes (negative: missing, so one row or one column), at index[a] along each other axis
 * a. `where(row, column)` returns the whole-array position: {from, to} for each axis, equal unless averaged.
 */
function matrixOf(array, axes, index) {
  const { shape } = array;
  const numbers = numbersOf(array);
  const strides = shape.map((_, axis) => product(shape.slice(axis + 1)));
  const extent = (axis) => (axis < 0 ? 1 : shape[axis]);
  const stride = (axis) => (axis < 0 ? 0 : strides[axis]);
  const others = shape.map((_, axis) => axis).filter((axis) => axis !== axes.rows && axis !== axes.columns);
  const start = sum(others.map((axis) => (index[axis] ?? 0) * strides[axis]));
  const matrix = { rows: extent(axes.rows), columns: extent(axes.columns) };
  matrix.at = (row, column) => numbers[start + row * stride(axes.rows) + column * stride(axes.columns)];
  matrix.where = (row, column) =>
    shape.map((_, axis) =>
      placesOf(array, axis, axis === axes.rows ? row : axis === axes.columns ? column : (index[axis] ?? 0)),
    );
  return matrix;
}

/** The matrix reduced to at most `most` rows and columns by averaging cells. */
function averaged(matrix, most) {
  const down = Math.ceil(matrix.rows / most);
  const across = Math.ceil(matrix.columns / most);
  if (down === 1 && across === 1) return matrix;
  const ends = (row, column) => [
    Math.min((row + 1) * down, matrix.rows) - 1,
    Math.min((column + 1) * across, matrix.columns) - 1,
  ];
  return {
    rows: Math.ceil(matrix.rows / down),
    columns: Math.ceil(matrix.columns / across),
    at(row, column) {
      const [lastRow, lastColumn] = ends(row, column);
      let total = 0;
      for (let i = row * down; i <= lastRow; ++i)
        for (let j = column * across; j <= lastColumn; ++j) total += matrix.at(i, j);
      return total / ((lastRow - row * down + 1) * (lastColumn - column * across + 1));
    },
    where(row, column) {
      const last = matrix.where(...ends(row, column));
      return matrix.where(row * down, column * across).map(({ from }, axis) => ({ from, to: last[axis].to }));
    },
  };
}

/** "2", or "8–15" for a mean. `extent` is the whole axis's. */
function formatPlaces({ from, to }, extent) {
  const last = Math.min(to, extent - 1);
  return last > from ? `${from}–${last}` : `${from}`;
}

/** "[0, 2]", or "[0, 8–15]" for a mean. `shape` is the whole array's. */
function formatPlace(where, shape) {
  return where.length === 0 ? "" : `[${where.map((places, axis) => formatPlaces(places, shape[axis])).join(", ")}]`;
}

/** True if the position is a single number, not a mean. */
function isExact(where, shape) {
  return where.every(({ from, to }, a) => Math.min(to, shape[a] - 1) === from);
}

/** The text to show instead of a missing or empty array; null for others. */
function insteadOf(array, missing) {
  if (!array) return missing;
  return product(array.shape) === 0 ? "no numbers" : null;
}

/** The statistics of an array in words: [text, isBad] for each. */
function statisticsOf(array) {
  const s = array.statistics;
  if (!s) return [];
  const parts = [
    [`min ${short(s.least)}`, false],
    [`max ${short(s.largest)}`, false],
    [`mean ${short(s.mean)}`, false],
    [`std ${short(s.deviation)}`, false],
    [`zeros ${formatShare(s.zeros, s.count)}`, false],
  ];
  if (s.nan) parts.push([`NaN ${s.nan.toLocaleString("en")}`, true]);
  if (s.infinite) parts.push([`infinite ${s.infinite.toLocaleString("en")}`, true]);
  return parts;
}
