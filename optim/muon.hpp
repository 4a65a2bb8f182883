/// Muon: steps of orthogonal matrices, for the weights of hidden layers.
#pragma once

#include <array>
#include <cstddef>

#include "optimizer.hpp"

namespace tapegrad {

/// The options of Muon, by PyTorch's names.
struct MuonOptions {
  double lr = 1e-3;           ///< learning rate
  double weight_decay = 0.1;  ///< fraction of the parameter subtracted in each step, times lr
  double momentum = 0.95;     ///< fraction of the gradients' mean kept in each step
  bool nesterov = true;       ///< looks one step of momentum ahead
  std::array<double, 3> ns_coefficients{3.4445, -4.775, 2.0315};  ///< a, b, c of a Newton-Schulz step
  double eps = 1e-7;                                              ///< lower limit of the norm that divides a matrix
  std::size_t ns_steps = 5;                                       ///< number of Newton-Schulz steps, below 100
  bool match_rms_adamw = false;  ///< adjust_lr_fn="match_rms_adamw": steps as large as AdamW's, for its learning rate
  TAPEGRAD_FIELDS(lr, weight_decay, momentum, nesterov, ns_coefficients, eps, ns_steps, match_rms_adamw)
};

/// Muon's state of a parameter.
template <class T> struct MuonState {
  StateArray<T> momentum_buffer;  ///< B
  /// The state before the first step of a parameter of this shape. Throws std::invalid_argument unless it is a matrix.
  explicit MuonState(const Shape& shape);
  /// Allocates all memory for steps.
  void reserve(const MuonOptions&) { momentum_buffer.reserve(); }
  TAPEGRAD_FIELDS(momentum_buffer)
};

/// Muon (Jordan 2024, https://kellerjordan.github.io/posts/muon), as in PyTorch, for matrices (m, n) of hidden layers;
/// embeddings, the head, biases and norms train with AdamW. With the gradient G of a parameter P,
///
///     B  = momentum B + (1 - momentum) G
///     X  = nesterov ? (1 - momentum) G + momentum B : B,  divided by max(its Frobenius norm, eps)
///     X  = a X + b X X^T X + c X X^T X X^T X              ns_steps times: makes all singular values about 1
///     P -= lr weight_decay P + lr max(1, m / n)^0.5 X     with match_rms_adamw, 0.2 max(m, n)^0.5
///
/// PyTorch computes X in bfloat16.
template <class T> class Muon : public GroupedOptimizer<T, MuonOptions, MuonState<T>> {
 public:
  /// Throws std::invalid_argument without parameters, for an undefined or duplicate one, for one that is not a matrix,
  /// for negative or non-finite options, momentum of 1 or more, and 100 ns_steps or more.
  explicit Muon(Parameters<T> parameters, const MuonOptions& options = {})
      : GroupedOptimizer<T, MuonOptions, MuonState<T>>("Muon", std::move(parameters), options) {}

 private:
  std::size_t memory_size(const Shape& shape) const override;
  void update(Parameter<T>& parameter, MuonState<T>& state, const MuonOptions& options, T* memory) const override;
};

}  // namespace tapegrad
