#include "internal/labels.hpp"

#include <algorithm>

#include "../../engine/array/internal/error.hpp"

namespace tapegrad::detail {
namespace {

using Axes = Labels::Axes;

bool fit(const Axes& axes, const Shape& shape) {
  return std::ranges::equal(axes, shape, [](const PageAxis& axis, std::size_t extent) {
    return axis.labels.empty() || axis.labels.size() == extent;
  });
}

// The path of the enclosing layer: "blocks.0" for "blocks.0.norm1".
std::string layer_around(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// True if the layer is `path` or inside it.
bool is_within(const std::string& layer, const std::string& path) {
  return path.empty() || (layer + '.').starts_with(path + '.');
}

// The entry of a name or path, or null.
const Axes* find_axes(const PageStep& step, const PageOptions& page, const std::string& key) {
  for (const PageAxes* axes : {&step.axes, &page.axes})
    if (const auto found = axes->find(key); found != axes->end()) return &found->second;
  return nullptr;
}

}  // namespace

const Axes* Labels::of_value(const std::string& name, const Shape& shape) const {
  const Axes* axes = name.empty() ? nullptr : find_axes(step_, page_, name);
  require(axes == nullptr || fit(*axes, shape), "save_page", "expected one PageAxis per axis of ", name, " ", shape,
          ", with one label per index or none, got other axes");
  return axes;
}

const Axes* Labels::in_layer(std::string layer, const Shape& shape) const {
  for (;; layer = layer_around(layer)) {
    const Axes* axes = find_axes(step_, page_, layer);
    if (axes != nullptr && fit(*axes, shape)) return axes;
    if (layer.empty()) return nullptr;
  }
}

// Among the layer's enclosing paths, longer ones come later in the map.
PageTokens Labels::tokens_in(const std::string& layer) const {
  PageTokens found;
  for (const auto* tokens : {&page_.tokens, &step_.tokens})
    for (const auto& [path, of_layer] : *tokens)
      if (is_within(layer, path)) found = of_layer;
  return found;
}

void Labels::add_tokens(JsonObject& attention, bool queries, const std::string& layer, const Axes* read,
                        std::size_t batch, std::size_t count) const {
  const char* side = queries ? "queries" : "keys";
  const PageTokens tokens = tokens_in(layer);
  const auto& lists = queries ? tokens.queries : tokens.keys;
  if (lists.empty()) {  // the input's tokens are along its second-to-last axis
    if (read == nullptr) return;
    const std::vector<std::string>& labels = (*read)[read->size() - 2].labels;
    if (!labels.empty()) attention[side] = std::vector<std::vector<std::string>>{labels};
    return;
  }
  const bool fits = (lists.size() == 1 || lists.size() == batch) &&
                    std::ranges::all_of(lists, [&](const auto& list) { return list.size() == count; });
  require(fits, "save_page", "expected a token for each of ", count, " ", side,
          ", in one list or in one list per batch entry (", batch, "), got other tokens");
  attention[side] = lists;
}

void add_axes(JsonObject& node, const Axes* axes) {
  if (axes == nullptr || axes->empty()) return;
  std::vector<Json> labels, names;
  for (const PageAxis& axis : *axes) {
    labels.push_back(axis.labels.empty() ? Json() : Json(axis.labels));
    names.push_back(axis.name);
  }
  node["axes"] = labels;
  node["axis_names"] = names;
}

}  // namespace tapegrad::detail
