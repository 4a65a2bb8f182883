// Groups a step's operations in layers by the layers' paths.
//
// An item is {operation} or {layer, children, operations, ...}. Operations keep their order: a layer used twice, with
// others between, appears twice. Equal neighbors such as blocks.0 to blocks.3 are grouped again in an item with their
// number as `repeats`.

/** The items of these operations below the layer path `prefix`. */
function layersOf(operations, prefix = "") {
  const items = [];
  for (const operation of operations) {
    const layer = layerBelow(operation.layer, prefix);
    if (layer === null) items.push({ operation });
    else if (items.at(-1)?.layer === layer) items.at(-1).operations.push(operation);
    else items.push({ layer, prefix, operations: [operation] });
  }
  for (const item of items) if (item.layer) item.children = layersOf(item.operations, item.layer);
  return gatherEqual(items.map(withoutNeedlessLayer));
}

/**
 * The layer path one level below `prefix`, with lists and numbers combined: "blocks.0"; null if there is none.
 */
function layerBelow(path, prefix) {
  const inside = prefix === "" || path.startsWith(`${prefix}.`);
  if (path === "" || path === prefix || !inside) return null;
  const names = (prefix === "" ? path : path.slice(prefix.length + 1)).split(".");
  const taken = /^\d+$/.test(names[1] ?? "") ? 2 : 1;
  return (prefix === "" ? [] : [prefix]).concat(names.slice(0, taken)).join(".") || null;
}

/** Replaces a layer of one operation by the operation. */
function withoutNeedlessLayer(item) {
  return item.layer && item.operations.length === 1 ? { operation: item.operations[0], of: layerName(item) } : item;
}

function layerName(item) {
  return item.prefix ? item.layer.slice(item.prefix.length + 1) : item.layer;
}

/** A text equal for equal layers: operations, shapes and paths relative to the layer. */
function signature(item) {
  return item.operations
    .map((o) => [o.operation, o.shape.join(), o.layer.slice(item.layer.length)].join(" "))
    .join("\n");
}

function gatherEqual(items) {
  const gathered = [];
  for (const item of items) {
    const last = gathered.at(-1);
    const does = item.layer && /\.\d+$/.test(item.layer) ? signature(item) : null;
    if (does !== null && last?.does === does) last.run.push(item);
    else gathered.push(does === null ? item : { run: [item], does });
  }
  return gathered.map((item) => {
    if (!item.run) return item;
    if (item.run.length === 1) return item.run[0];
    const operations = item.run.flatMap((layer) => layer.operations);
    return {
      layer: `${item.run[0].layer} … ${layerName(item.run.at(-1))}`,
      repeats: item.run.length,
      children: item.run,
      operations,
    };
  });
}
