/// Checks of lists of parameters. For the library's own sources.
#pragma once

#include <cstddef>
#include <map>

#include "../../engine/array/internal/error.hpp"
#include "../../engine/tape/parameter_handle.hpp"

namespace tapegrad::detail {

/// Throws std::invalid_argument naming `operation` for duplicate parameters and, unless skipped, undefined ones.
template <class T>
void require_each_once(const char* operation, const Parameters<T>& parameters, bool skip_undefined = false) {
  std::map<const void*, std::size_t> indices;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& parameter = parameters[i];
    if (skip_undefined && !parameter->defined()) continue;
    require(parameter->defined(), operation, "expected parameters with a value, got an undefined one at index ", i);
    const auto [first, is_new] = indices.try_emplace(parameter.variable(), i);
    require(is_new, operation, "expected each parameter once, got ", *parameter, " twice, at indices ", first->second,
            " and ", i);
  }
}

}  // namespace tapegrad::detail
