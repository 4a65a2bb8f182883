/// Layers of operations on a tape, and patches of a layer's output.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "../engine/tape/tensor.hpp"
#include "model/fields.hpp"

namespace tapegrad {
namespace detail {

struct LayerCall;

/// True if this thread has a patch, or its tape keeps the layers of operations.
bool layers_are_observed() noexcept;

/// The path of a layer, from the name of its first named parameter; "" if it has none.
template <class Layer> std::string layer_path(const Layer& layer) {
  std::string path;
  for_each_parameter(layer, [&](const Path& inside, const auto& parameter) {
    if (!path.empty()) return;
    const std::string name = parameter.name(), end = '.' + inside.text();
    if (name.ends_with(end)) path = name.substr(0, name.size() - end.size());
  });
  return path;
}

}  // namespace detail

/// Until its scope ends, the operations of this thread belong to a layer: Tape::find finds the layer's last operation
/// by the layer's path, pages and errors show the path. The library's layers have scopes of their own. Does nothing
/// unless a tape keeps values or detects anomalies, or a Patch is active.
///
///     tg::Tensor<float> operator()(const tg::Tensor<float>& x) const {
///       const tg::LayerScope scope(*this);
///       return scope.output(x + fc2(tg::relu(fc1(x))));
///     }
class LayerScope {
 public:
  /// A layer inside the present one: "encoder", or "blocks.0.encoder" inside the layer "blocks.0".
  explicit LayerScope(std::string_view name);

  /// A layer that lists its fields. Its path is the name of a parameter without the part inside the layer: "blocks.0"
  /// for "blocks.0.fc1.weight". Stays in the present layer if no parameter has a name (see named_parameters).
  template <detail::HasFields Layer> explicit LayerScope(const Layer& layer) {
    if (detail::layers_are_observed()) open(detail::layer_path(layer));
  }

  ~LayerScope();
  LayerScope(const LayerScope&) = delete;
  LayerScope& operator=(const LayerScope&) = delete;

  /// y, or what patches of this layer make of it.
  template <class T> Tensor<T> output(Tensor<T> y) const;

 private:
  void open(std::string path);

  std::shared_ptr<const detail::LayerCall> call_;  // null if it does nothing
};

/// Changes the output of a layer on this thread until its scope ends, to find out what depends on it. With or without a
/// tape; gradients flow through the function. Several patches of a layer apply in the order of their construction.
///
///     const tg::Patch<> patch("blocks.0.attention.heads", [&](const auto& y) { return y * only_head_2; });
///     evaluate(model);
template <class T = float> class Patch {
 public:
  /// Computes a new output of the same shape.
  using Function = std::function<Tensor<T>(const Tensor<T>& output)>;

  /// The layer's output becomes f(output).
  Patch(std::string layer, Function f);
  /// The layer's output becomes a constant.
  Patch(std::string layer, Array<T> output);
  ~Patch();
  Patch(const Patch&) = delete;
  Patch& operator=(const Patch&) = delete;

  /// How many outputs it has changed. 0 means that no layer with this path was called.
  std::size_t calls() const { return calls_; }

 private:
  friend class LayerScope;

  std::string layer_;
  Function f_;
  std::size_t calls_ = 0;
  Patch* outer_;  // the previous one of this thread
};

}  // namespace tapegrad
