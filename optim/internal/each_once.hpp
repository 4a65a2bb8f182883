/// Checks of lists of parameters. For the library's own sources.
#pragma once

#include <set>

#include "../../engine/array/internal/error.hpp"
#include "../../engine/tape/parameter_handle.hpp"

namespace tapegrad::detail {

/// Throws std::invalid_argument naming `operation` for duplicate and undefined parameters.
template <class T> void require_each_once(const char* operation, const Parameters<T>& parameters) {
  std::set<const void*> variables;
  for (const auto& parameter : parameters) {
    require(parameter->defined(), operation, "expected parameters with a value, got one without");
    require(variables.insert(parameter.variable()).second, operation, "expected each parameter once, got ", *parameter,
            " twice");
  }
}

}  // namespace tapegrad::detail
