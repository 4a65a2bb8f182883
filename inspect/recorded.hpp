/// A read-only view of what a tape recorded, for tests: Tape::find, Tape::find_all and Tape::nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../engine/tape/arguments.hpp"
#include "../engine/tape/tape.hpp"

namespace tapegrad {
namespace detail {

struct LayerCall;

}  // namespace detail

template <class T> struct Contribution;
template <class T> class AttentionWeights;

/// An operation, a parameter, or a constant that an operation read, on a tape with TapeOptions::keep_values. Valid
/// after its tape ends. Gradients are those of the last backward pass.
///
/// `tape.find<T>(name)` finds a layer by its path ("blocks.0.attention", its last operation), a parameter by its path,
/// or a tensor by its name; T is the type of the numbers. Layers need parameters with names (tapegrad::parameters sets
/// them) or a LayerScope. Throws std::out_of_range with the nearest names if there is none, std::invalid_argument if
/// there are several.
/// `tape.find_all<T>(pattern)` finds all names that match; `*` stands for any characters. A layer applied twice is
/// found twice. `tape.nodes<T>()` returns all operations and parameters.
///
/// All three are in the order of recording. They show what was recorded before the last backward pass, or everything
/// before the first one: references that a test computes afterwards do not appear. They throw std::logic_error if the
/// tape keeps no values.
///
///     const tg::Recorded<float> q = tape.find<float>("blocks.0.attention.q_proj");
///     CHECK(q.shape() == tg::Shape{2, 4, 8});
///     CHECK_CLOSE(q.grad(), expected);
template <class T> class Recorded {
 public:
  using value_type = T;  ///< float or double

  Recorded(const Recorded&) = default;  ///< A move copies, too, so its source stays valid.
  Recorded& operator=(const Recorded&) = default;

  /// "linear"; "parameter" for a parameter, "constant" for a constant.
  std::string operation() const;
  /// The given name, a parameter's path, or "".
  std::string name() const;
  /// The path of the innermost layer, such as "blocks.0.attention.q_proj"; "" outside of all layers. For a parameter,
  /// of the layer that first read it.
  std::string layer() const;
  /// "y = x Wᵀ + b; dx = dy W; dW = dyᵀ x; db = Σ dy": the value, then the gradient of each input; "" if unknown.
  std::string formula() const;
  /// False for a frozen parameter, which is a constant.
  bool is_parameter() const;

  const Shape& shape() const;     ///< the extents of the value
  const Array<T>& value() const;  ///< the output; a parameter's value when it was first read
  bool has_grad() const;          ///< true if a gradient arrived
  /// The gradient after hooks, valid until the next backward pass. Throws std::logic_error if none arrived.
  const Array<T>& grad() const;

  /// What the operation read, in the order of its arguments; without undefined inputs.
  std::vector<Recorded> inputs() const;
  /// What each reader's rule added to the gradient, in the order of recording.
  std::vector<Contribution<T>> contributions() const;
  /// The operation's arguments besides its inputs: axis, eps, ids, mask.
  const std::vector<typename Arguments<T>::Argument>& arguments() const;

  /// Computes the weights of an attention: of this operation, or of the only one in the layer that was found. Throws
  /// std::logic_error if there is none or more than one.
  AttentionWeights<T> attention_weights() const;

 private:
  friend class Tape;

  Recorded(std::shared_ptr<const detail::Recording> recording, std::int32_t node, std::ptrdiff_t constant = -1,
           const detail::LayerCall* found = nullptr) noexcept
      : recording_(std::move(recording)), node_(node), constant_(constant), found_(found) {}

  std::shared_ptr<const detail::Recording> recording_;
  std::int32_t node_;
  std::ptrdiff_t constant_;         // the number of a constant among the node's inputs, or -1
  const detail::LayerCall* found_;  // the layer, if found by its path
};

/// A part of a gradient.
template <class T> struct Contribution {
  Recorded<T> reader;  ///< the operation whose rule added it
  std::size_t input;   ///< which of the reader's inputs, counted from 0 with undefined ones
  Array<T> gradient;   ///< what the rule added
};

/// The weights inside an attention operation, computed on request: (B, H, T, S).
template <class T> class AttentionWeights {
 public:
  const Array<T>& value() const { return value_; }    ///< the weights before dropout
  bool has_grad() const { return grad_ != nullptr; }  ///< true if a gradient arrived at the operation
  const Array<T>& grad() const;                       ///< their gradient. Throws std::logic_error without one

 private:
  friend class Recorded<T>;
  AttentionWeights(Array<T> value, Value<T> grad) : value_(std::move(value)), grad_(std::move(grad)) {}

  Array<T> value_;
  Value<T> grad_;
};

}  // namespace tapegrad
