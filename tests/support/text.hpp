/// Texts: printed objects, repetitions, and words in them.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <sstream>
#include <string>

/// An object as printed: by its own print(), as a tape is, or by <<.
template <class Printable> std::string printed(const Printable& object) {
  std::ostringstream out;
  if constexpr (requires { object.print(out); })
    object.print(out);
  else
    out << object;
  return out.str();
}

/// A model's listing.
template <class Model> std::string listing(const Model& model) {
  std::ostringstream out;
  tapegrad::print(out, model);
  return out.str();
}

inline bool contains(const std::string& text, const std::string& words) { return text.find(words) != text.npos; }
