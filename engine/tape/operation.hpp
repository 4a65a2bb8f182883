/// An operation's name and formula.
#pragma once

#include <limits>

namespace tapegrad {

/// An operation's name, formula and rule. Converts from a name alone. The texts must outlive the tape, as string
/// literals do, since a training step copies nothing.
struct Operation {
  const char* name;  ///< in reports and errors

  /// For readers, in Unicode: the value y, then each input's gradient in the order of the inputs, separated by "; ".
  /// "y = x Wᵀ + b; dx = dy W; dW = dyᵀ x; db = Σ dy" names the inputs x, W and b; ⊙ multiplies elementwise. The sum
  /// over broadcast axes is implied. "" if unknown.
  const char* formula;

  double c;  ///< value of the letter c in the formula, as in "y = c x; dx = c dy"; NaN if there is no constant

  /// From a name, or a name with its formula.
  constexpr Operation(const char* name_text, const char* formula_text = "",
                      double constant = std::numeric_limits<double>::quiet_NaN())
      : name(name_text), formula(formula_text), c(constant) {}
};

}  // namespace tapegrad
