/// What makes doctest's messages about tapegrad readable. Works with doctest.h included before or after, and without.
/// Part of tapegrad.hpp, as all files of a program that print a type must print it by one StringMaker.
#pragma once

#include <string>

#include "../array/array.hpp"
#include "../array/shape.hpp"

namespace tapegrad::detail {

/// The values, after the shape.
template <class T> std::string array_text(const Array<T>& array);

}  // namespace tapegrad::detail

namespace doctest {

template <class T> struct StringMaker;
class String;

// String is known only in doctest.h: as a template's argument it is looked into when a message is made.
template <class T> struct StringMaker<tapegrad::Array<T>> {
  template <class Text = String> static Text convert(const tapegrad::Array<T>& array) {
    return Text(tapegrad::detail::array_text(array).c_str());
  }
};

template <> struct StringMaker<tapegrad::Shape> {
  template <class Text = String> static Text convert(const tapegrad::Shape& shape) {
    return Text(tapegrad::to_string(shape).c_str());
  }
};

}  // namespace doctest
