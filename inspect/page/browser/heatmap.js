// Heat maps: a matrix as colored cells, with numbers in large cells, and in the tooltip of all.
//
// Blue is negative, orange positive, near the background's color for 0, and red for NaN and infinity. Maps are drawn at
// the screen's resolution and redrawn at a higher one for printing.

const PALETTES = {
  light: { zero: [248, 248, 245], negative: [31, 92, 178], positive: [201, 84, 10], ink: "#1b1d21", paper: "#ffffff" },
  dark: { zero: [38, 41, 47], negative: [112, 172, 255], positive: [255, 168, 76], ink: "#e8e9eb", paper: "#16181c" },
};
const WRONG = [224, 0, 32];
const NUMBER_CELL = { width: 50, height: 24 };
const LARGEST_CELL = 26;
const LINE = { least: 11, enough: 16 }; // height of a row with a label, or of a vector
const LONGEST_LABEL = 96;
const LABEL_FONT = "11px system-ui, sans-serif";
const NUMBER_FONT = "11px ui-monospace, 'DejaVu Sans Mono', monospace";

/** [red, green, blue] of x; `limit` has the full color. */
function colourOf(x, limit, palette) {
  if (!Number.isFinite(x)) return WRONG;
  const end = x < 0 ? palette.negative : palette.positive;
  const share = limit > 0 ? Math.min(1, Math.abs(x) / limit) ** 0.8 : 0;
  return palette.zero.map((from, i) => Math.round(from + (end[i] - from) * share));
}

function paletteNow() {
  return isDark() ? PALETTES.dark : PALETTES.light;
}

/**
 * A canvas with the heat map of a matrix. Options: limit (magnitude of the full color), box {width, height} (maximum
 * size in CSS pixels), rowLabels and columnLabels (texts, or null), allowed(row, column) (false: hatched),
 * marked {row, column} (a framed cell), label (for screen readers), describe(row, column) (returns the tooltip's
 * lines), onpoint(row, column), and onpoint() when the pointer leaves.
 */
function heatmap(matrix, options) {
  const canvas = element("canvas", { class: "heatmap", tabindex: 0, role: "img", "aria-label": options.label });
  const context = canvas.getContext("2d");
  const layout = layoutOf(matrix, options, context);
  const map = { canvas, matrix, options, layout, cursor: null }; // cursor: the keyboard's {row, column}
  canvas.style.width = `${layout.width}px`;
  canvas.style.height = `${layout.height}px`;
  canvas.redraw = (scale = Math.max(window.devicePixelRatio, 1)) => {
    canvas.width = Math.round(layout.width * scale);
    canvas.height = Math.round(layout.height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawCells(context, matrix, layout, options);
    drawLabels(context, layout);
    if (options.marked) drawFrame(context, layout, options.marked, `rgb(${WRONG})`);
    if (map.cursor) drawFrame(context, layout, map.cursor, paletteNow().ink);
  };
  listenToPointer(map);
  listenToKeys(map);
  canvas.redraw();
  return canvas;
}

/** Shows a cell's tooltip next to a point of the window. Returns its lines. */
function pointAt({ options }, { row, column }, at) {
  const lines = options.describe(row, column);
  tooltip(lines, at);
  options.onpoint?.(row, column);
  return lines;
}

function leave({ options }) {
  tooltip([], null);
  options.onpoint?.();
}

function listenToPointer(map) {
  const { canvas, matrix, layout, options } = map;
  canvas.addEventListener("pointermove", (event) => {
    const column = Math.floor((event.offsetX - layout.left) / layout.cell.width);
    const row = Math.floor((event.offsetY - layout.top) / layout.cell.height);
    const inside = row >= 0 && column >= 0 && row < matrix.rows && column < matrix.columns;
    const at = { x: event.clientX, y: event.clientY };
    const label = column < 0 ? options.rowLabels?.[row] : row < 0 && options.columnLabels?.[column];
    if (inside) return pointAt(map, { row, column }, at);
    leave(map);
    return label && tooltip([label], at); // in full; the map may cut it
  });
  canvas.addEventListener("pointerleave", () => leave(map));
}

/** Arrow keys move between cells and announce their contents. */
function listenToKeys(map) {
  const { canvas, matrix, layout } = map;
  const clamp = (x, end) => Math.max(0, Math.min(end - 1, x));
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const { row, column } = map.cursor ?? { row: -move[0], column: -move[1] }; // the first key goes to the first cell
    map.cursor = { row: clamp(row + move[0], matrix.rows), column: clamp(column + move[1], matrix.columns) };
    canvas.redraw();
    const box = canvas.getBoundingClientRect();
    const at = {
      x: box.left + layout.left + (map.cursor.column + 1) * layout.cell.width,
      y: box.top + layout.top + (map.cursor.row + 1) * layout.cell.height,
    };
    announce(pointAt(map, map.cursor, at).join(". "));
  });
  canvas.addEventListener("blur", () => {
    if (!map.cursor) return;
    map.cursor = null;
    canvas.redraw();
    leave(map);
  });
}

/** Redraws all heat maps after a change of colors or resolution. */
function redrawHeatmaps(scale) {
  for (const canvas of document.querySelectorAll("canvas.heatmap")) canvas.redraw(scale);
}

/** The text, shortened to a width in the context's font. */
function cutTo(width, text, context) {
  const isWider = (shown) => context.measureText(shown).width > width;
  if (!isWider(text)) return text;
  const letters = [...text];
  while (letters.length > 1 && isWider(`${letters.join("")}…`)) letters.pop();
  return `${letters.join("")}…`;
}

/**
 * The positions of cells and labels. Cells are large enough for numbers if these fit into the box; otherwise square, or
 * taller if few rows have labels. Labels are cut to a third of the box.
 */
function layoutOf(matrix, options, context) {
  const { box } = options;
  context.font = LABEL_FONT;
  const longest = Math.min(LONGEST_LABEL, box.width / 3);
  const cut = (labels) => labels?.map((text) => cutTo(longest, text, context));
  const [rowLabels, columnLabels] = [cut(options.rowLabels), cut(options.columnLabels)];
  const widest = (texts) => Math.ceil(Math.max(...texts.map((text) => context.measureText(text).width)));
  const left = rowLabels ? widest(rowLabels) + 6 : 0;
  const room = { width: box.width - left, height: box.height };
  const numbers = matrix.columns * NUMBER_CELL.width <= room.width && matrix.rows * NUMBER_CELL.height <= room.height;
  const side = Math.min(LARGEST_CELL, room.width / matrix.columns, room.height / matrix.rows);
  const square = side >= 3 ? Math.floor(side) : side;
  const line = rowLabels || matrix.rows === 1 ? Math.min(LINE.enough, Math.floor(room.height / matrix.rows)) : 0;
  const height = line < LINE.least ? square : Math.max(square, line);
  const cell = numbers ? NUMBER_CELL : { width: square, height };
  const turned = columnLabels && widest(columnLabels) > Math.max(cell.width - 4, 14);
  const over = rowLabels ? Math.max(0, Math.ceil((LINE.enough - cell.height) / 2)) : 0; // for the outer labels
  const top = columnLabels ? (turned ? widest(columnLabels) + 6 : 16) : over;
  return {
    numbers,
    cell,
    left,
    top,
    rowLabels,
    columnLabels,
    turned,
    everyRow: Math.ceil(LINE.least / cell.height), // has a label
    everyColumn: columnLabels && Math.ceil((turned ? 12 : Math.min(widest(columnLabels) + 2, 17)) / cell.width),
    width: Math.ceil(left + matrix.columns * cell.width) + 1,
    height: Math.ceil(top + matrix.rows * cell.height + over) + 1,
  };
}

function drawCells(context, matrix, layout, options) {
  const palette = paletteNow();
  const { cell, left, top } = layout;
  const size = { width: matrix.columns * cell.width, height: matrix.rows * cell.height };
  context.clearRect(0, 0, layout.width, layout.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(pixelsOf(matrix, options.limit, palette), left, top, size.width, size.height);
  if (cell.width >= 6) drawGrid(context, matrix, layout, size, palette);
  if (options.allowed) hatchHidden(context, matrix, layout, options.allowed, palette);
  if (layout.numbers) drawNumbers(context, matrix, layout, options.limit, palette);
  context.strokeStyle = palette.ink;
  context.globalAlpha = 0.35;
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top + 0.5, size.width, size.height);
  context.globalAlpha = 1;
}

/** A canvas with one pixel per cell. */
function pixelsOf(matrix, limit, palette) {
  const canvas = element("canvas", { width: matrix.columns, height: matrix.rows });
  const context = canvas.getContext("2d");
  const image = context.createImageData(matrix.columns, matrix.rows);
  let i = 0;
  for (let row = 0; row < matrix.rows; ++row)
    for (let column = 0; column < matrix.columns; ++column) {
      const [red, green, blue] = colourOf(matrix.at(row, column), limit, palette);
      image.data[i++] = red;
      image.data[i++] = green;
      image.data[i++] = blue;
      image.data[i++] = 255;
    }
  context.putImageData(image, 0, 0);
  return canvas;
}

function drawGrid(context, matrix, { cell, left, top }, size, palette) {
  context.fillStyle = palette.paper;
  for (let row = 1; row < matrix.rows; ++row) context.fillRect(left, top + row * cell.height, size.width, 1);
  for (let column = 1; column < matrix.columns; ++column)
    context.fillRect(left + column * cell.width, top, 1, size.height);
}

function drawNumbers(context, matrix, { cell, left, top }, limit, palette) {
  context.font = NUMBER_FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let row = 0; row < matrix.rows; ++row)
    for (let column = 0; column < matrix.columns; ++column) {
      const number = matrix.at(row, column);
      const [red, green, blue] = colourOf(number, limit, palette);
      context.fillStyle = 0.3 * red + 0.59 * green + 0.11 * blue > 125 ? "#101114" : "#ffffff";
      context.fillText(inCell(number), left + (column + 0.5) * cell.width, top + (row + 0.5) * cell.height + 1);
    }
}

/** The number in at most seven characters. */
function inCell(x) {
  const texts = [3, 2, 1].map((digits) => short(x, digits));
  return texts.find((text) => text.length <= 7) ?? x.toExponential(0).replace("e+", "e");
}

/** Hatches the cells for which `allowed` is false. */
function hatchHidden(context, matrix, { cell, left, top }, allowed, palette) {
  const hidden = new Path2D();
  for (let row = 0; row < matrix.rows; ++row)
    for (let column = 0; column < matrix.columns; ++column)
      if (!allowed(row, column))
        hidden.rect(left + column * cell.width, top + row * cell.height, cell.width, cell.height);
  const width = matrix.columns * cell.width;
  const height = matrix.rows * cell.height;
  const lines = new Path2D();
  for (let offset = -height; offset < width; offset += 5) {
    lines.moveTo(left + offset, top + height);
    lines.lineTo(left + offset + height, top);
  }
  context.save();
  context.clip(hidden);
  context.strokeStyle = palette.ink;
  context.globalAlpha = 0.45;
  context.lineWidth = 0.8;
  context.stroke(lines);
  context.restore();
}

function drawLabels(context, { cell, left, top, rowLabels, columnLabels, turned, everyRow, everyColumn }) {
  context.font = LABEL_FONT;
  context.fillStyle = paletteNow().ink;
  context.textBaseline = "middle";
  rowLabels?.forEach((text, row) => {
    if (row % everyRow) return;
    context.textAlign = "right";
    context.fillText(text, left - 4, top + (row + 0.5) * cell.height);
  });
  columnLabels?.forEach((text, column) => {
    if (column % everyColumn) return;
    context.save();
    context.translate(left + (column + 0.5) * cell.width, top - (turned ? 4 : 7));
    if (turned) context.rotate(-Math.PI / 2);
    context.textAlign = turned ? "left" : "center";
    context.fillText(text, 0, 0);
    context.restore();
  });
}

function drawFrame(context, layout, { row, column }, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  const { cell, left, top } = layout;
  context.strokeRect(left + column * cell.width + 1, top + row * cell.height + 1, cell.width - 1, cell.height - 1);
}
