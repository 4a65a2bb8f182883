#include "shape.hpp"

namespace tapegrad {
namespace {

template <class Integers> std::string in_parentheses(const Integers& integers) {
  std::string text = "(";
  for (std::size_t i = 0; i < integers.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(integers[i]);
  return text + ")";
}

}  // namespace

std::string to_string(const Shape& shape) { return in_parentheses(shape); }
std::string to_string(const IntList& list) { return in_parentheses(list); }

std::size_t element_count(const Shape& shape) {
  std::size_t count = 1;
  for (std::size_t extent : shape) count *= extent;
  return count;
}

}  // namespace tapegrad
