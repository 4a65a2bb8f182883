/// Layers without first weights.
#pragma once

#include <utility>

#include "../engine/array/array.hpp"

namespace tapegrad {

/// While one lives on a thread, the layers that are made there draw no first weights, and initialize_gpt2 and its kind
/// change nothing: what their parameters hold is not set. For a model that is loaded next, where drawing its random
/// numbers would take longer than reading its file, as torch.nn.utils.skip_init does. Norms begin as ever.
///
///     const tg::SkipInitialization skip;
///     Model model(sizes);
///     tg::load(model, "model.safetensors");
class SkipInitialization {
 public:
  SkipInitialization() : before_(std::exchange(lives_, true)) {}
  ~SkipInitialization() { lives_ = before_; }
  SkipInitialization(const SkipInitialization&) = delete;
  SkipInitialization& operator=(const SkipInitialization&) = delete;

  /// Whether one lives on this thread.
  static bool lives() { return lives_; }

 private:
  inline static thread_local bool lives_ = false;
  bool before_;
};

namespace detail {

/// What draw() gives, or where first weights are skipped an array of the shape that is not set.
template <class T, class Draw> Array<T> first_weights(const Shape& shape, const Draw& draw) {
  return SkipInitialization::lives() ? Array<T>(shape) : draw(shape);
}

}  // namespace detail
}  // namespace tapegrad
