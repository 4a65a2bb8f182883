/// An operation's formula split into value and rules. For the library's own sources.
#pragma once

#include <string>
#include <vector>

#include "../../engine/tape/operation.hpp"

namespace tapegrad::detail {

struct Formula {
  std::string value;               ///< "y = x Wᵀ + b", or ""
  std::vector<std::string> rules;  ///< "dx = dy W", ..., in the order of the inputs
};

/// Splits Operation::formula, with the constant instead of the letter c.
Formula formula_of(const Operation& operation);

}  // namespace tapegrad::detail
