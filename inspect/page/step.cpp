#include "internal/step.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "../../engine/array/internal/error.hpp"
#include "../internal/formula.hpp"
#include "../internal/node_view.hpp"
#include "../internal/recorded_names.hpp"
#include "internal/arrays.hpp"
#include "internal/labels.hpp"

namespace tapegrad::detail {
namespace {

// A tape's nodes on T.
template <class T> class NodeViews {
 public:
  explicit NodeViews(const Recording& recording) {
    for_each_node(recording, [&]<class U>(const NodeView<U>& node) {
      if constexpr (std::same_as<T, U>) nodes_.push_back(node);
    });
    readers_.resize(nodes_.size());
    for (const NodeView<T>& node : nodes_)
      for (const std::int32_t input : node.inputs)
        if (input >= 0 && node.kept->gradient) ++readers_[static_cast<std::size_t>(input)];
  }

  std::size_t size() const { return nodes_.size(); }
  auto begin() const { return nodes_.begin(); }
  auto end() const { return nodes_.end(); }
  const NodeView<T>& operator[](std::int32_t i) const { return nodes_[static_cast<std::size_t>(i)]; }

  // The contribution of a node's rule to the gradient of input n. Null without one, or if it is the whole gradient,
  // already on the page.
  Value<T> contribution(const NodeView<T>& node, std::size_t n) const {
    if (node.inputs[n] < 0 || node.kept->contributions.empty()) return {};
    const Value<T>& added = node.kept->contributions[n];
    const bool is_all = readers_[static_cast<std::size_t>(node.inputs[n])] == 1;
    return is_all && added == (*this)[node.inputs[n]].kept->gradient ? Value<T>() : added;
  }

 private:
  std::vector<NodeView<T>> nodes_;
  std::vector<std::size_t> readers_;  // the number of swept operations reading each
};

// A described value the operation did not keep; null if it described none with this name.
template <class T>
const typename Arguments<T>::Intermediate* intermediate(const NodeView<T>& node, std::string_view name) {
  const auto& all = node.kept->arguments.intermediates();
  const auto found = std::ranges::find(all, name, &Arguments<T>::Intermediate::name);
  return found == all.end() ? nullptr : &*found;
}

template <class T> bool has_gradient(const typename Arguments<T>::Intermediate& x, const NodeView<T>& node) {
  return node.kept->gradient && x.gradient;
}

// The C++ expressions that find a tape's nodes: `tape.find<float>("head")`, or `tape.nodes<float>()[3]` for a node
// without a name of its own.
template <class T> class Expressions {
 public:
  explicit Expressions(const Recording& recording)
      : names_(recorded_names<T>(recording)), shown_(shown_nodes<T>(recording)) {
    for (const RecordedName& known : names_) ++count_[known.name];
  }

  // Of a node, or of input number `constant` of it. "" for a constant without a name, and for nodes after a backward
  // pass, which the tape does not find.
  std::string of(std::int32_t node, std::ptrdiff_t constant = -1) const {
    std::string best;  // the longest path is that of the innermost layer
    for (auto known = std::ranges::lower_bound(names_, node, {}, &RecordedName::node);
         known != names_.end() && known->node == node; ++known) {
      if (known->constant != constant || count_.at(known->name) > 1) continue;
      if (!known->layer) return find(known->name);
      if (known->name.size() > best.size()) best = known->name;
    }
    if (!best.empty()) return find(best);
    return constant < 0 && node < shown_ ? std::string("tape.nodes<") + type + ">()[" + std::to_string(node) + ']' : "";
  }

 private:
  static std::string find(const std::string& name) {
    std::string literal;
    for (const char c : name) literal += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return std::string("tape.find<") + type + ">(\"" + literal + "\")";
  }

  static constexpr const char* type = std::same_as<T, float> ? "float" : "double";
  std::vector<RecordedName> names_;  // by node
  std::map<std::string, std::size_t> count_;
  std::int32_t shown_;
};

// The max number of elements of an array on the page.
struct Limits {
  std::size_t attention;  // weights, their gradient and the mask
  std::size_t others;
};

// Writes a tape's nodes, first float, then double, as one step.
class StepWriter {
 public:
  StepWriter(const PageStep& settings, const PageOptions& options, const Limits& limits)
      : settings_(settings), labels_(settings, options), limits_(limits) {}

  template <class T> void add(const Recording& recording) {
    const NodeViews<T> nodes(recording);
    const Expressions<T> expressions(recording);
    std::vector<std::size_t> places(nodes.size());     // the nodes' indices on the page
    std::map<const Array<T>*, std::size_t> constants;  // indices of constants already read
    for (const NodeView<T>& node : nodes) {
      const Places inputs = inputs_of(node, places, constants, expressions);
      places[node.number] = nodes_.size();
      add_node(node, nodes, inputs, node.is_parameter || !node.layer ? "" : node.layer->path,
               expressions.of(static_cast<std::int32_t>(node.number)));
    }
    const Observers<T>& observers = *observers_of(recording.of<T>());
    const std::int32_t start = observers.kept_values()->start();
    if (start >= 0) loss_ = static_cast<std::int64_t>(places[static_cast<std::size_t>(start)]);
    const auto anomaly = observers.anomaly() ? observers.anomaly()->found() : std::nullopt;
    if (anomaly && start_position_.is_null())
      start_position_ = JsonObject{{"node", places[static_cast<std::size_t>(anomaly->node)]},
                                   {"backward", anomaly->backward},
                                   {"text", settings_.about.empty() ? anomaly->text : settings_.about}};
  }

  Json step() const {
    JsonObject out{{"label", settings_.label}, {"loss", loss_}, {"nodes", nodes_}};
    if (!start_position_.is_null())
      out["opened_at"] = start_position_;
    else if (!settings_.opened_at.empty())  // unread values are not on the tape
      out["opened_at"] = opening_at(loss_ >= 0 ? loss_ : static_cast<std::int64_t>(nodes_.size()) - 1);
    return out;
  }
  std::size_t arrays() const { return arrays_; }
  std::size_t averaged() const { return averaged_; }
  // The largest number of elements of an averaged array.
  std::size_t largest_size() const { return largest_size_; }

 private:
  using Axes = Labels::Axes;
  using Places = std::vector<std::optional<std::size_t>>;  // indices of inputs on the page; empty if undefined

  // The page's first position.
  JsonObject opening_at(std::int64_t node) const {
    return {{"node", node}, {"backward", false}, {"text", settings_.about}};
  }

  template <class T> Json array(const Value<T>& value) { return value ? array(*value, limits_.others) : Json(); }

  template <class T> Json array(const Array<T>& array, std::size_t max_size) {
    const std::size_t left = pooled_size(array.shape(), pooling(array.shape(), max_size));
    ++arrays_;
    if (left < array.size()) {
      ++averaged_;
      largest_size_ = std::max(largest_size_, left);
    }
    return array_json(array, max_size);
  }

  // Adds constants at their first use.
  template <class T>
  Places inputs_of(const NodeView<T>& node, const std::vector<std::size_t>& places,
                   std::map<const Array<T>*, std::size_t>& constants, const Expressions<T>& expressions) {
    Places inputs;
    for (std::size_t n = 0; n < node.inputs.size(); ++n) {
      if (node.inputs[n] >= 0) {
        inputs.emplace_back(places[static_cast<std::size_t>(node.inputs[n])]);
        continue;
      }
      const auto& [value, name] = node.kept->constants[n];
      if (!value) {
        inputs.emplace_back();
        continue;
      }
      const auto [place, is_new] = constants.try_emplace(value.get(), nodes_.size());
      if (is_new)
        add_constant(value, name,
                     expressions.of(static_cast<std::int32_t>(node.number), static_cast<std::ptrdiff_t>(n)));
      inputs.emplace_back(place->second);
    }
    return inputs;
  }

  template <class T> void add_constant(const Value<T>& value, const std::string& name, const std::string& find) {
    JsonObject out{{"kind", "constant"},
                   {"operation", ""},
                   {"name", name},
                   {"find", find},
                   {"layer", ""},
                   {"inputs", std::vector<Json>()},
                   {"formula", ""},
                   {"rules", std::vector<Json>()},
                   {"shape", value->shape()},
                   {"value", array(value)},
                   {"gradient", nullptr},
                   {"reached", false}};
    open_at_next_if(name);
    add(std::move(out), labels_.of_value(name, value->shape()));
  }

  template <class T>
  void add_node(const NodeView<T>& node, const NodeViews<T>& nodes, const Places& inputs, const std::string& layer,
                const std::string& find) {
    const auto& kept = *node.kept;
    const Formula formula = formula_of(node.operation);
    // Skips undefined inputs, with their rules if each input has one.
    std::vector<std::size_t> present;
    std::vector<std::string> rules;
    std::vector<Json> contributions;
    for (std::size_t n = 0; n < inputs.size(); ++n) {
      if (!inputs[n]) continue;
      present.push_back(*inputs[n]);
      if (formula.rules.size() == inputs.size()) rules.push_back(formula.rules[n]);
      contributions.push_back(array(nodes.contribution(node, n)));
    }
    if (formula.rules.size() != inputs.size()) rules = formula.rules;

    JsonObject out{{"kind", node.is_parameter ? "parameter" : "operation"},
                   {"operation", node.is_parameter ? "" : node.operation.name},
                   {"name", node.name},
                   {"find", find},
                   {"layer", layer},
                   {"inputs", present},
                   {"formula", formula.value},
                   {"rules", rules},
                   {"shape", node.shape},
                   {"value", array(kept.value)},
                   {"gradient", array(kept.gradient)},
                   {"reached", node.is_parameter ? kept.reached : kept.gradient != nullptr}};
    if (!std::ranges::all_of(contributions, &Json::is_null)) out["contributions"] = contributions;
    if (!kept.arguments.arguments().empty()) out["arguments"] = arguments_json(kept.arguments);
    if (intermediate(node, "weights") != nullptr) out["attention"] = attention_json(node, inputs, layer);
    add_numeric_gradient(out, node.name, node.shape);
    open_at_next_if(node.name);
    if (node.profile != nullptr && !node.is_parameter) {
      out["forward_ns"] = node.profile->forward * 1e9;
      if (node.profile->backward >= 0) out["backward_ns"] = node.profile->backward * 1e9;
      out["saved_bytes"] = node.profile->saved;
    }
    const bool is_named = node.is_parameter || !node.name.empty();
    add(std::move(out), is_named ? labels_.of_value(node.name, node.shape) : labels_.in_layer(layer, node.shape));
  }

  void add(JsonObject node, const Axes* axes) {
    add_axes(node, axes);
    nodes_.emplace_back(node);
    axes_.push_back(axes);
  }

  // The operation's arguments other than tensors: texts and arrays.
  template <class T> std::vector<Json> arguments_json(const Arguments<T>& arguments) {
    std::vector<Json> out;
    for (const auto& argument : arguments.arguments()) {
      JsonObject json{{"name", argument.name}, {"text", argument.text()}};
      std::visit(
          [&]<class X>(const X& x) {
            if constexpr (requires { x->shape(); }) json["value"] = array(Array<T>(*x), limits_.others);
          },
          argument.value);
      out.emplace_back(std::move(json));
    }
    return out;
  }

  // For attention operations that describe their weights.
  template <class T>
  JsonObject attention_json(const NodeView<T>& node, const Places& inputs, const std::string& layer) {
    const auto& weights = *intermediate(node, "weights");
    const std::size_t max = limits_.attention;
    JsonObject out{{"weights", array(weights.value(), max)},
                   {"gradient", nullptr},
                   {"allowed", array(intermediate(node, "allowed")->value(), max)}};
    if (has_gradient(weights, node)) out["gradient"] = array(weights.gradient(*node.kept->gradient), max);
    const Shape& shape = weights.shape;  // (B, H, queries, keys)
    for (const bool queries : {true, false})
      labels_.add_tokens(out, queries, layer, axes_[inputs[queries ? 0 : 1].value()], shape[0], shape[queries ? 2 : 3]);
    return out;
  }

  void add_numeric_gradient(JsonObject& out, const std::string& name, const Shape& shape) {
    const auto numeric = settings_.numeric.find(name);
    if (name.empty() || numeric == settings_.numeric.end()) return;
    require(numeric->second.shape() == shape, "save_page", "expected a numeric gradient of the shape ", shape, " of ",
            name, ", got ", numeric->second.shape());
    out["compared"] = JsonObject{{"name", "numeric"}, {"gradient", array(numeric->second, limits_.others)}};
  }

  // The next node, if it has this name.
  void open_at_next_if(const std::string& name) {
    if (!name.empty() && name == settings_.opened_at)
      start_position_ = opening_at(static_cast<std::int64_t>(nodes_.size()));
  }

  const PageStep& settings_;
  const Labels labels_;
  const Limits limits_;
  std::vector<Json> nodes_;
  std::vector<const Axes*> axes_;  // per node; may be null
  std::int64_t loss_ = -1;
  Json start_position_;
  std::size_t arrays_ = 0, averaged_ = 0, largest_size_ = 0;
};

// The bytes of all arrays' numbers, with at most `max_size` per array.
std::size_t bytes_of_numbers(const std::vector<Shape>& arrays, std::size_t max_size) {
  std::size_t bytes = 0;
  for (const Shape& shape : arrays) bytes += pooled_size(shape, pooling(shape, max_size)) * sizeof(float) / 3 * 4 + 4;
  return bytes;
}

// The max number of elements per array with which all arrays fit; at least 1.
std::size_t max_size_that_fits(const std::vector<Shape>& arrays, std::size_t bytes) {
  std::size_t fitting = 1, upper = 1;
  for (const Shape& shape : arrays) upper = std::max(upper, element_count(shape));
  if (bytes_of_numbers(arrays, upper) <= bytes) return upper;
  while (upper - fitting > 1) {
    const std::size_t middle = fitting + (upper - fitting) / 2;
    (bytes_of_numbers(arrays, middle) <= bytes ? fitting : upper) = middle;
  }
  return fitting;
}

// The shapes of all arrays on a page.
struct Shapes {
  std::vector<Shape> attention, others;

  template <class T> void add(const Recording& recording) {
    const NodeViews<T> nodes(recording);
    const auto add_if_any = [&](const Value<T>& value) {
      if (value) others.push_back(value->shape());
    };
    std::set<const Array<T>*> constants;  // each is stored once
    for (const NodeView<T>& node : nodes) {
      add_if_any(node.kept->value);
      add_if_any(node.kept->gradient);
      for (const auto& constant : node.kept->constants)
        if (constants.insert(constant.value.get()).second) add_if_any(constant.value);
      for (std::size_t n = 0; n < node.inputs.size(); ++n) add_if_any(nodes.contribution(node, n));
      for (const auto& argument : node.kept->arguments.arguments())
        std::visit(
            [&]<class X>(const X& x) {
              if constexpr (requires { x->shape(); }) others.push_back(x->shape());
            },
            argument.value);
      const auto* const weights = intermediate(node, "weights");
      if (weights == nullptr) continue;
      attention.insert(attention.end(), has_gradient(*weights, node) ? 3 : 2, weights->shape);  // with "allowed"
    }
  }
};

// Averaged attention has no tokens. It stays whole within half of the bytes, or within the space left by other arrays.
Limits limits_of(std::span<const RecordedStep> steps, std::size_t bytes) {
  Shapes shapes;
  for (const RecordedStep& step : steps) {
    shapes.add<float>(*step.recorded);
    shapes.add<double>(*step.recorded);
    for (const auto& [name, numeric] : step.settings.numeric) shapes.others.push_back(numeric.shape());
  }
  const auto without = [bytes](std::size_t taken) { return bytes - std::min(bytes, taken); };
  const std::size_t of_others = bytes_of_numbers(shapes.others, std::numeric_limits<std::size_t>::max());
  const std::size_t attention = max_size_that_fits(shapes.attention, std::max(bytes / 2, without(of_others)));
  return {attention, max_size_that_fits(shapes.others, without(bytes_of_numbers(shapes.attention, attention)))};
}

}  // namespace

Json page_json(std::span<const RecordedStep> steps, const PageOptions& options) {
  const Limits limits = limits_of(steps, options.largest);
  std::vector<Json> written;
  std::vector<std::string> left_out;
  std::size_t arrays = 0, averaged = 0, largest_size = 0;
  for (const RecordedStep& step : steps) {
    StepWriter writer(step.settings, options, limits);
    writer.add<float>(*step.recorded);
    writer.add<double>(*step.recorded);
    written.push_back(writer.step());
    arrays += writer.arrays();
    averaged += writer.averaged();
    largest_size = std::max(largest_size, writer.largest_size());
  }
  if (averaged > 0)
    left_out.push_back(std::to_string(averaged) + " of " + std::to_string(arrays) +
                       " arrays are averaged down to at most " + std::to_string(largest_size) + " numbers each.");
  return JsonObject{{"version", 1}, {"title", options.title}, {"left_out", left_out}, {"steps", written}};
}

}  // namespace tapegrad::detail
