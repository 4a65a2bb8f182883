/// Constructing layers without initialization.
#pragma once

#include <utility>

#include "../engine/array/array.hpp"

namespace tapegrad {

/// In its scope, layers made on this thread leave their parameters uninitialized, and initialize_gpt2 and the like do
/// nothing, as with torch.nn.utils.skip_init. For a model to be loaded: drawing random numbers can take longer than
/// reading its file. Norms are initialized as usual.
///
///     const tg::SkipInitialization skip;
///     Model model(sizes);
///     tg::load(model, "model.safetensors");
class SkipInitialization {
 public:
  SkipInitialization() : before_(std::exchange(is_active_, true)) {}
  ~SkipInitialization() { is_active_ = before_; }
  SkipInitialization(const SkipInitialization&) = delete;
  SkipInitialization& operator=(const SkipInitialization&) = delete;

  /// True in the scope of one on this thread.
  static bool is_active() { return is_active_; }

 private:
  inline static thread_local bool is_active_ = false;
  bool before_;
};

namespace detail {

/// draw(shape), or an uninitialized array while initialization is skipped.
template <class T, class Draw> Array<T> initial_weights(const Shape& shape, const Draw& draw) {
  return SkipInitialization::is_active() ? Array<T>(shape) : draw(shape);
}

}  // namespace detail
}  // namespace tapegrad
