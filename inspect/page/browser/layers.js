// The operations of a step gathered in their layers, by the layers' paths.
//
// An item is {operation} or {layer, children, operations, ...}. Operations stay in their order: a layer that is used
// twice with something between is there twice. Neighbours that do the same, such as blocks.0 to blocks.3, are gathered
// once more in an item that `repeats` them.

/** The items of these operations below `prefix`, a layer's path. */
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
 * The path one layer further down than `prefix`, numbers together with their list: "blocks.0"; null when there is none.
 */
function layerBelow(path, prefix) {
  const inside = prefix === "" || path.startsWith(`${prefix}.`);
  if (path === "" || path === prefix || !inside) return null;
  const names = (prefix === "" ? path : path.slice(prefix.length + 1)).split(".");
  const taken = /^\d+$/.test(names[1] ?? "") ? 2 : 1;
  return (prefix === "" ? [] : [prefix]).concat(names.slice(0, taken)).join(".") || null;
}

/** A layer of one operation is a line, not a fold with one line in it. */
function withoutNeedlessLayer(item) {
  return item.layer && item.operations.length === 1 ? { operation: item.operations[0], of: layerName(item) } : item;
}

function layerName(item) {
  return item.prefix ? item.layer.slice(item.prefix.length + 1) : item.layer;
}

/** What tells whether two layers do the same: operations, shapes and the paths below them. */
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
