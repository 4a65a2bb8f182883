#include "internal/anomaly.hpp"

#include <cmath>

#include "../engine/array/internal/error.hpp"
#include "../engine/array/internal/layout.hpp"
#include "../engine/tape/internal/sweep.hpp"
#include "internal/observers.hpp"

namespace tapegrad::detail {
namespace {

// The index of the first NaN, or of the first infinity if there is no NaN.
template <class T> std::optional<std::size_t> first_anomaly(const Array<T>& x) {
  std::optional<std::size_t> infinity;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x.data()[i])) return i;
    if (std::isinf(x.data()[i]) && !infinity) infinity = i;
  }
  return infinity;
}

template <class T> std::string text_of(const Array<T>& x, std::size_t i) {
  const T value = x.data()[i];
  return std::string(std::isnan(value) ? "NaN"
                     : value > 0       ? "inf"
                                       : "-inf") +
         " at " + to_string(index_of(i, x.shape()));
}

// The end of an error message.
std::string in_layer(const LayerCall* layer) { return layer ? "; in layer " + layer->path : ""; }

}  // namespace

template <class T> std::string AnomalyDetector<T>::described(std::int32_t i) const {
  const std::string name = nodes_.name(i), operation = nodes_[i].operation.name;
  return (name.empty() ? operation + " #" + std::to_string(i) : name) + ' ' + to_string(nodes_[i].shape);
}

template <class T> std::string AnomalyDetector<T>::described(const Tensor<T>& x, std::int32_t node) const {
  if (!x.defined()) return "none";
  return node < 0 ? "a constant " + to_string(x.shape()) : described(node);
}

template <class T> void AnomalyDetector<T>::fail_at(std::int32_t node, bool backward, std::string text) {
  if (keep_) found_ = {node, backward, text};
  throw std::runtime_error(std::move(text));
}

template <class T>
void AnomalyDetector<T>::check_output(const Operation& operation, const Tensor<T>& y, const Inputs<T>& inputs,
                                      const Edges& edges) {
  const std::optional<std::size_t> i = first_anomaly(y.value());
  if (!i) return;
  if (!std::isnan(y.value().data()[*i])) {
    for (const Input<T>& input : inputs)  // infinity from an input is allowed, such as from an additive mask
      if (input.tensor->defined() && first_anomaly(input.tensor->value())) return;
  }
  std::string read;
  for (std::size_t n = 0; n < inputs.size(); ++n) read += (n == 0 ? "" : ", ") + described(*inputs[n].tensor, edges[n]);
  std::string text = message(operation.name, "expected finite values, got ", text_of(y.value(), *i), " of ", y.shape(),
                             " from ", read, in_layer(open_layer));
  if (Tensor<T> made = y; keep_) nodes_.append(operation, made, inputs, Edges(edges), nullptr, {});
  fail_at(static_cast<std::int32_t>(nodes_.size()) - 1, false, std::move(text));
}

// A non-finite parameter makes every dependent value non-finite, so the parameter is reported instead.
template <class T> void AnomalyDetector<T>::check_parameter(const char* operation, const Tensor<T>& x) {
  const std::optional<std::size_t> i = first_anomaly(x.value());
  if (!i) return;
  const std::string name = x.name();
  if (keep_) nodes_.append_parameter(x);
  fail_at(static_cast<std::int32_t>(nodes_.size()) - 1, false,
          message(operation, "expected finite parameters, got ", text_of(x.value(), *i), " of ",
                  name.empty() ? "a parameter" : name, " ", x.shape()));
}

template <class T> void AnomalyDetector<T>::check_gradients(std::int32_t i, Sweep<T>& sweep) {
  const Node<T>& node = nodes_[i];
  for (std::size_t n = 0; n < node.inputs.size(); ++n) {
    if (node.inputs[n] < 0) continue;
    const GradPointer<T>& gradient = sweep.grad(node.inputs[n]);
    const auto at = gradient ? first_anomaly(*gradient) : std::nullopt;
    if (!at) continue;
    fail_at(i, true,
            message(node.operation.name, "expected finite gradients, the backward rule produced ",
                    text_of(*gradient, *at), " in the gradient of input ", n, ", ", described(node.inputs[n]),
                    in_layer(observers_of(nodes_)->layer(i))));
  }
}

template <class T> void AnomalyDetector<T>::check_hooked(std::int32_t i, const Array<T>& gradient) {
  if (const auto at = first_anomaly(gradient))
    fail_at(i, true,
            message("hook", "expected finite gradients, a hook produced ", text_of(gradient, *at),
                    " in the gradient of ", described(i), in_layer(observers_of(nodes_)->layer(i))));
}

template class AnomalyDetector<float>;
template class AnomalyDetector<double>;

}  // namespace tapegrad::detail
