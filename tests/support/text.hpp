/// Texts: printed objects, errors, repetitions, and words in them.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <exception>
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

/// The message of the exception that a call throws; "nothing" if none.
template <class Call> std::string thrown_by(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

inline std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

inline bool contains(const std::string& text, const std::string& words) { return text.find(words) != text.npos; }

/// How often these words are in the text.
inline std::size_t count(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != text.npos; at += words.size()) ++found;
  return found;
}
