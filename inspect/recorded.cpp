#include "recorded.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "../engine/array/internal/error.hpp"
#include "../layers/model/fields.hpp"
#include "internal/formula.hpp"
#include "internal/recorded_names.hpp"

namespace tapegrad {

using namespace detail;

namespace {

constexpr const char* kFind = "find";

template <class T> const Node<T>& node_of(const Recording& recording, std::int32_t node) {
  return recording.of<T>()[node];
}

template <class T> const typename KeptValues<T>::Entry& kept_of(const Recording& recording, std::int32_t node) {
  return observers_of(recording.of<T>())->kept_values()->entries()[static_cast<std::size_t>(node)];
}

// True if the node belongs to the layer, at any depth.
template <class T> bool is_in(const Recording& recording, std::int32_t node, const LayerCall* layer) {
  const LayerCall* call = observers_of(recording.of<T>())->layer(node);
  while (call != nullptr && call != layer) call = call->outer.get();
  return call != nullptr;
}

void require_kept(const Recording& recording) {
  require_usage(recording.options().keep_values, kFind,
                "expected a tape that keeps its values, got one that does not; create it with "
                "tapegrad::Tape tape({.keep_values = true})");
}

// The number of insertions, deletions and replacements between two texts (Levenshtein 1966).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// "; the nearest are a, b and c"
std::string nearest(std::string_view name, const std::set<std::string>& names) {
  if (names.empty()) return "; nothing on the tape has a name: call tapegrad::parameters(model) before";
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& known : names) ranked.emplace_back(edit_distance(name, known), known);
  const std::size_t count = std::min<std::size_t>(ranked.size(), 3);
  std::ranges::partial_sort(ranked, ranked.begin() + static_cast<std::ptrdiff_t>(count));
  std::string text = count == 1 ? "; the nearest is " : "; the nearest are ";
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : i + 1 == count ? " and " : ", ") + ranked[i].second;
  return text;
}

}  // namespace

namespace detail {

template <class T> std::int32_t shown_nodes(const Recording& recording) {
  const Nodes<T>& nodes = recording.of<T>();
  const std::int32_t start = observers_of(nodes)->kept_values()->start();
  return start < 0 ? static_cast<std::int32_t>(nodes.size()) : start + 1;
}

template <class T> std::vector<RecordedName> recorded_names(const Recording& recording) {
  const Nodes<T>& nodes = recording.of<T>();
  std::vector<RecordedName> names;
  std::vector<std::pair<const LayerCall*, std::int32_t>> layers;  // with their last operations
  std::map<const LayerCall*, std::size_t> places;                 // among the layers
  std::set<const Array<T>*> constants;
  for (std::int32_t i = 0; i < shown_nodes<T>(recording); ++i) {
    const auto& kept = kept_of<T>(recording, i);
    for (std::size_t n = 0; n < kept.constants.size(); ++n)
      if (const auto& [value, name] = kept.constants[n]; !name.empty() && constants.insert(value.get()).second)
        names.push_back({.name = name, .node = i, .constant = static_cast<std::ptrdiff_t>(n)});
    if (std::string name = nodes.name(i); !name.empty()) names.push_back({.name = std::move(name), .node = i});
    if (nodes[i].is_leaf()) continue;
    for (const LayerCall* call = observers_of(nodes)->layer(i); call != nullptr; call = call->outer.get()) {
      const auto [place, is_new] = places.try_emplace(call, layers.size());
      if (is_new) layers.emplace_back(call, i);
      layers[place->second].second = i;
    }
  }
  for (const auto& [call, last] : layers) names.push_back({.name = call->path, .node = last, .layer = call});
  std::ranges::sort(names, {}, [](const RecordedName& known) {
    return std::tuple(known.node, known.layer != nullptr, known.constant, std::string_view(known.name));
  });
  return names;
}

}  // namespace detail

// ---- Tape ----------------------------------------------------------------------------------------------------------

template <class T> Recorded<T> Tape::find(std::string_view name) const {
  require_kept(*recording_);
  std::vector<Recorded<T>> found;
  std::set<std::string> names;
  for (RecordedName& known : recorded_names<T>(*recording_)) {
    if (known.name == name) found.push_back(Recorded<T>(recording_, known.node, known.constant, known.layer));
    names.insert(std::move(known.name));
  }
  require_in_range(!found.empty(), kFind, "expected the path of a layer or parameter, or the name of a tensor of ",
                   sizeof(T) == sizeof(float) ? "float" : "double", ", got \"", name, "\"",
                   [&] { return nearest(name, names); });
  if (found.size() == 1) return found.front();
  std::string all;
  for (const Recorded<T>& recorded : found)
    all += (all.empty() ? "" : ", ") + recorded.operation() + " #" + std::to_string(recorded.node_) + ' ' +
           to_string(recorded.shape());
  fail<std::invalid_argument>(kFind, "expected one node named \"", name, "\", got ", found.size(), ": ", all,
                              "; find_all returns each");
}

template <class T> std::vector<Recorded<T>> Tape::find_all(std::string_view pattern) const {
  require_kept(*recording_);
  std::vector<Recorded<T>> found;
  for (const RecordedName& known : recorded_names<T>(*recording_))
    if (matches(pattern, known.name)) found.push_back(Recorded<T>(recording_, known.node, known.constant, known.layer));
  return found;
}

template <class T> std::vector<Recorded<T>> Tape::nodes() const {
  require_kept(*recording_);
  std::vector<Recorded<T>> all;
  for (std::int32_t i = 0; i < shown_nodes<T>(*recording_); ++i) all.push_back(Recorded<T>(recording_, i));
  return all;
}

// ---- Recorded ------------------------------------------------------------------------------------------------------

template <class T> std::string Recorded<T>::operation() const {
  return constant_ >= 0 ? "constant" : node_of<T>(*recording_, node_).operation.name;
}

template <class T> std::string Recorded<T>::name() const {
  if (constant_ < 0) return recording_->of<T>().name(node_);
  return kept_of<T>(*recording_, node_).constants[static_cast<std::size_t>(constant_)].name;
}

template <class T> std::string Recorded<T>::layer() const {
  const LayerCall* const layer = found_ ? found_ : observers_of(recording_->of<T>())->layer(node_);
  return layer ? layer->path : "";
}

template <class T> std::string Recorded<T>::formula() const {
  if (constant_ >= 0) return "";
  const Formula formula = formula_of(node_of<T>(*recording_, node_).operation);
  std::string text = formula.value;
  for (const std::string& rule : formula.rules) text += "; " + rule;
  return text;
}

template <class T> bool Recorded<T>::is_parameter() const {
  return constant_ < 0 && node_of<T>(*recording_, node_).is_parameter;
}

template <class T> const Array<T>& Recorded<T>::value() const {
  const auto& kept = kept_of<T>(*recording_, node_);
  return constant_ < 0 ? *kept.value : *kept.constants[static_cast<std::size_t>(constant_)].value;
}

template <class T> const Shape& Recorded<T>::shape() const { return value().shape(); }

template <class T> bool Recorded<T>::has_grad() const {
  return constant_ < 0 && kept_of<T>(*recording_, node_).gradient != nullptr;
}

template <class T> const Array<T>& Recorded<T>::grad() const {
  require_usage(has_grad(), "grad", "expected a gradient from a backward pass, got none for the ", operation(), " ",
                name(), name().empty() ? "" : " ", shape());
  return *kept_of<T>(*recording_, node_).gradient;
}

template <class T> std::vector<Recorded<T>> Recorded<T>::inputs() const {
  std::vector<Recorded> inputs;
  if (constant_ >= 0) return inputs;
  const Edges& edges = node_of<T>(*recording_, node_).inputs;
  for (std::size_t n = 0; n < edges.size(); ++n) {
    if (edges[n] < 0 && !kept_of<T>(*recording_, node_).constants[n].value) continue;
    inputs.push_back(Recorded(recording_, edges[n] < 0 ? node_ : edges[n]));
    if (edges[n] < 0) inputs.back().constant_ = static_cast<std::ptrdiff_t>(n);
  }
  return inputs;
}

template <class T> std::vector<Contribution<T>> Recorded<T>::contributions() const {
  std::vector<Contribution<T>> contributions;
  if (constant_ >= 0) return contributions;
  for (std::int32_t i = node_ + 1; i < shown_nodes<T>(*recording_); ++i) {
    const Edges& edges = node_of<T>(*recording_, i).inputs;
    const auto& added = kept_of<T>(*recording_, i).contributions;
    for (std::size_t n = 0; n < added.size(); ++n)
      if (edges[n] == node_ && added[n]) contributions.push_back({Recorded(recording_, i), n, *added[n]});
  }
  return contributions;
}

template <class T> const std::vector<typename Arguments<T>::Argument>& Recorded<T>::arguments() const {
  static const std::vector<typename Arguments<T>::Argument> none;
  return constant_ < 0 ? kept_of<T>(*recording_, node_).arguments.arguments() : none;
}

template <class T> AttentionWeights<T> Recorded<T>::attention_weights() const {
  using Intermediate = typename Arguments<T>::Intermediate;
  const Intermediate* weights = nullptr;
  std::int32_t attention = -1;
  std::size_t count = 0;
  const std::int32_t first = found_ ? 0 : node_;
  for (std::int32_t i = first; i <= node_ && constant_ < 0; ++i) {
    if (found_ && !is_in<T>(*recording_, i, found_)) continue;
    for (const Intermediate& intermediate : kept_of<T>(*recording_, i).arguments.intermediates())
      if (intermediate.name == "weights") weights = &intermediate, attention = i, ++count;
  }
  require_usage(count == 1, "attention_weights", "expected an attention, or a layer with one, got ",
                found_ ? "the layer " + found_->path : "the " + operation(), " with ", count);
  const auto& gradient = kept_of<T>(*recording_, attention).gradient;
  return {weights->value(), gradient && weights->gradient ? make_value<T>(weights->gradient(*gradient)) : nullptr};
}

template <class T> const Array<T>& AttentionWeights<T>::grad() const {
  require_usage(has_grad(), "grad",
                "expected a gradient from a backward pass through an attention without dropout, got none");
  return *grad_;
}

#define INSTANTIATE(T)                                                                            \
  template std::vector<detail::RecordedName> detail::recorded_names<T>(const detail::Recording&); \
  template std::int32_t detail::shown_nodes<T>(const detail::Recording&);                         \
  template class Recorded<T>;                                                                     \
  template class AttentionWeights<T>;                                                             \
  template Recorded<T> Tape::find(std::string_view) const;                                        \
  template std::vector<Recorded<T>> Tape::find_all(std::string_view) const;                       \
  template std::vector<Recorded<T>> Tape::nodes() const;
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
