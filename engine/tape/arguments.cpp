#include "arguments.hpp"

#include <charconv>

namespace tapegrad {
namespace {

std::string text(bool x) { return x ? "true" : "false"; }
std::string text(std::int64_t x) { return std::to_string(x); }
std::string text(double x) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::general, 6).ptr};
}
std::string text(const std::string& x) { return x; }
std::string text(const IntList& x) { return to_string(x); }
template <class X> std::string text(const Value<X>& x) { return to_string(x->shape()); }

}  // namespace

template <class T> std::string Arguments<T>::Argument::text() const {
  return std::visit([](const auto& x) { return tapegrad::text(x); }, value);
}

template <class T> std::string to_string(const Arguments<T>& arguments) {
  std::string line;
  for (const auto& argument : arguments.arguments()) {
    if (!line.empty()) line += ' ';
    line += argument.name + '=' + argument.text();
  }
  return line;
}

#define INSTANTIATE(T)                                       \
  template std::string Arguments<T>::Argument::text() const; \
  template std::string to_string(const Arguments<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
