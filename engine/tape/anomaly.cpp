// Anomaly mode: where NaN or infinity first appears.
#include <cmath>
#include <limits>
#include <optional>

#include "../array/internal/error.hpp"
#include "../array/internal/layout.hpp"
#include "internal/recording.hpp"

namespace tapegrad::detail {
namespace {

// The index of the first NaN, or where there is none of the first infinity: that may be let pass.
template <class Element> std::optional<std::size_t> first_anomaly(const Array<Element>& x) {
  std::optional<std::size_t> infinity;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto element = static_cast<double>(x.data()[i]);
    if (std::isnan(element)) return i;
    if (std::isinf(element) && !infinity) infinity = i;
  }
  return infinity;
}

template <class T> std::optional<std::size_t> first_anomaly(const Tensor<T>& x) {
  return x.is_in_bfloat16() ? first_anomaly(x.bfloat16()) : first_anomaly(x.value());
}

template <class Element> std::string found(const Array<Element>& x, std::size_t i) {
  const auto value = static_cast<double>(x.data()[i]);
  return std::string(std::isnan(value) ? "NaN"
                     : value > 0       ? "inf"
                                       : "-inf") +
         " at " + to_string(index_of(i, x.shape()));
}

template <class T> std::string found(const Tensor<T>& x, std::size_t i) {
  return x.is_in_bfloat16() ? found(x.bfloat16(), i) : found(x.value(), i);
}

}  // namespace

template <class T> std::string Recording<T>::described(std::int32_t i) const {
  const std::string given = name(i), operation = node(i).operation.name;
  return (given.empty() ? operation + " #" + std::to_string(i) : given) + ' ' + to_string(node(i).shape);
}

template <class T> std::string Recording<T>::described(const Tensor<T>& x, std::int32_t node) const {
  if (!x.defined()) return "none";
  return node < 0 ? "a constant " + to_string(x.shape()) : described(node);
}

// "; in layer head" for an operation that reads a parameter of the layer, "; after layer head" for one that works on
// what came out of it: where the last parameter belongs that was recorded among all that went into these nodes. Empty
// when none has a name.
template <class T> std::string Recording<T>::place(const Edges& edges) const {
  std::vector<bool> reached(nodes_.size(), false), read(nodes_.size(), false);
  for (std::int32_t edge : edges)
    if (edge >= 0) reached[static_cast<std::size_t>(edge)] = read[static_cast<std::size_t>(edge)] = true;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (!reached[i]) continue;
    if (nodes_[i].is_parameter && !nodes_[i].leaf->name.empty()) {
      const std::string& name = nodes_[i].leaf->name;  // "layer.weight", or "weight" of a model that is one layer
      const std::size_t dot = name.rfind('.');
      const char* of_layer = read[i] ? "; in layer " : "; after layer ";
      const char* alone = read[i] ? "; at parameter " : "; after parameter ";
      return (dot == name.npos ? alone : of_layer) + name.substr(0, dot);
    }
    for (std::int32_t edge : nodes_[i].inputs)
      if (edge >= 0) reached[static_cast<std::size_t>(edge)] = true;
  }
  return "";
}

template <class T> void Recording<T>::fail_at(std::int32_t node, bool backward, std::string text) {
  if (options_.keep_values) anomaly_ = {node, backward, text};
  throw std::runtime_error(std::move(text));
}

template <class T>
void Recording<T>::check_output(const Operation& operation, const Tensor<T>& y, std::span<const Input<T>> inputs,
                                const Edges& edges) {
  const std::optional<std::size_t> i = first_anomaly(y.value());
  if (!i) return;
  if (!std::isnan(y.value().data()[*i])) {
    for (const Input<T>& input : inputs)  // infinity that comes in, as an additive mask's or masked_fill's, may go on
      if (input.tensor->defined() && first_anomaly(*input.tensor)) return;
  }
  std::string read;
  for (std::size_t n = 0; n < inputs.size(); ++n) read += (n == 0 ? "" : ", ") + described(*inputs[n].tensor, edges[n]);
  std::string text = message(operation.name, "expected finite values, made ", found(y.value(), *i), " of ", y.shape(),
                             " from ", read, place(edges));
  if (options_.keep_values) {
    Tensor<T> made = y;
    append(operation, made, inputs, edges, nullptr, 0);
  }
  fail_at(static_cast<std::int32_t>(nodes_.size()) - 1, false, std::move(text));
}

// A parameter that is not finite spoils whatever reads it, at once or further on: it is named instead of that.
template <class T> void Recording<T>::check_parameter(const char* operation, const Tensor<T>& x) {
  const Leaf<T>& leaf = *x.leaf_;
  const std::optional<std::size_t> i = first_anomaly(x);
  if (!i) return;
  if (options_.keep_values) add_parameter(x);
  fail_at(static_cast<std::int32_t>(nodes_.size()) - 1, false,
          message(operation, "expected finite parameters, given ", found(x, *i), " of ",
                  leaf.name.empty() ? "a parameter" : leaf.name, " ", leaf.shape));
}

template <class T> void Recording<T>::check_gradients(std::int32_t i) {
  const Node<T>& node = nodes_[static_cast<std::size_t>(i)];
  for (std::size_t n = 0; n < node.inputs.size(); ++n) {
    if (node.inputs[n] < 0) continue;
    const Node<T>& input = nodes_[static_cast<std::size_t>(node.inputs[n])];
    const auto at = input.grad ? first_anomaly(*input.grad) : std::nullopt;
    if (!at) continue;
    fail_at(i, true,
            message(node.operation.name, "expected finite gradients, the backward rule made ", found(*input.grad, *at),
                    " in the gradient of input ", n, ", ", described(node.inputs[n]), place(node.inputs)));
  }
}

template <class T> void Recording<T>::check_hooked(std::int32_t i, const Array<T>& gradient) {
  if (const auto at = first_anomaly(gradient))
    fail_at(i, true,
            message("hook", "expected finite gradients, a hook made ", found(gradient, *at), " in the gradient of ",
                    described(i), place(node(i).inputs)));
}

#define INSTANTIATE(T)                                                                                    \
  template std::string Recording<T>::described(std::int32_t) const;                                       \
  template void Recording<T>::check_output(const Operation&, const Tensor<T>&, std::span<const Input<T>>, \
                                           const Edges&);                                                 \
  template void Recording<T>::check_parameter(const char*, const Tensor<T>&);                             \
  template void Recording<T>::check_gradients(std::int32_t);                                              \
  template void Recording<T>::check_hooked(std::int32_t, const Array<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad::detail
