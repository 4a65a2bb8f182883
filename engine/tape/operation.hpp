/// What an operation is called, and what it computes.
#pragma once

#include <limits>

namespace tapegrad {

/// An operation's name and, for readers, its formula and rule. A name alone converts to it. The texts must outlive the
/// tape, as string literals do: nothing is copied in a training step.
struct Operation {
  /// What reports and errors call it.
  const char* name;

  /// In the mathematics that Unicode writes, its value y and then what its rule adds to the gradient of each input, in
  /// their order, separated by "; ": "y = x Wᵀ + b; dx = dy W; dW = dyᵀ x; db = Σ dy". What follows the d is what the
  /// input is called in all of them; ⊙ multiplies element by element. Where an input was broadcast, what is added is
  /// summed back, which needs not be said. "" where nobody has written it.
  const char* formula;

  /// The number that the letter c of the formula stands for: "y = c x; dx = c dy". NaN for none: c is a letter then.
  double c;

  /// From a name, or a name with its formula.
  constexpr Operation(const char* name_text, const char* formula_text = "",
                      double constant = std::numeric_limits<double>::quiet_NaN())
      : name(name_text), formula(formula_text), c(constant) {}
};

}  // namespace tapegrad
