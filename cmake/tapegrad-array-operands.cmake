# Arrays as operands, such as softmax(array, -1).
#
# The templates of engine/ops/ops.hpp cannot deduce T from an array. So each prototype with a Tensor<T> gets two
# overloads, for float and for double, whose arguments convert:
#
#     Tensor<float> softmax(const Tensor<float>& x, std::ptrdiff_t axis);
#
# Configuring the build generates them: declarations in headers/tapegrad/array_operands.hpp, which tapegrad.hpp includes,
# and definitions in array_operands.cpp. A new prototype needs nothing else if its types contain no commas.
function(tapegrad_array_operands target)
  set(operations ${PROJECT_SOURCE_DIR}/engine/ops/ops.hpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${operations})
  file(READ ${operations} text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  string(REPLACE "= {}" "= none" text "${text}")  # the braces left enclose bodies
  string(REPLACE ";" "{" text "${text}")          # a semicolon ends an element of CMake's lists
  set(prototype "template <class T> ([^{}()]+) ([a-z_0-9]+)\\(([^{}]*Tensor<T>[&>][^{}]*)\\) ?{")  # not an operator
  string(REGEX MATCHALL "${prototype}" found "${text}")

  set(declarations "")
  set(definitions "")
  foreach(T float double)
    foreach(match IN LISTS found)
      string(REGEX MATCH "${prototype}" match "${match}")
      string(REPLACE "<T>" "<${T}>" result "${CMAKE_MATCH_1}")
      set(name ${CMAKE_MATCH_2})
      string(REPLACE "<T>" "<${T}>" parameters "${CMAKE_MATCH_3}")
      string(REPLACE "= none" "= {}" parameters "${parameters}")
      string(REGEX REPLACE " = [^,]*" "" without_defaults "${parameters}")
      string(REGEX REPLACE "[^,]* ([a-z_0-9]+)" "\\1" arguments "${without_defaults}")
      string(APPEND declarations "${result} ${name}(${parameters});\n")
      string(APPEND definitions "${result} ${name}(${without_defaults}) { return ${name}<${T}>(${arguments}); }\n")
    endforeach()
  endforeach()

  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/headers/tapegrad/array_operands.hpp @ONLY CONTENT [=[
/// Arrays and expressions of float or double as operands of the operations in engine/ops/ops.hpp, as constants:
/// softmax(array, -1). Generated from ops.hpp.
#pragma once

#include <tapegrad/engine/ops/ops.hpp>

namespace tapegrad {

@declarations@
}  // namespace tapegrad
]=])
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/array_operands.cpp @ONLY CONTENT [=[
#include <tapegrad/array_operands.hpp>

namespace tapegrad {

@definitions@
}  // namespace tapegrad
]=])
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/array_operands.cpp)
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/headers)
endfunction()
