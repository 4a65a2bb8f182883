/// Readable arrays and shapes in doctest's messages, independent of whether and when doctest.h is included. Part of
/// tapegrad.hpp, since all files of a program must print a type with the same StringMaker.
#pragma once

#include <string>

#include "../engine/array/array.hpp"

namespace tapegrad::detail {

/// The values, after the shape.
template <class T> std::string array_text(const Array<T>& array);

}  // namespace tapegrad::detail

namespace doctest {

template <class T> struct StringMaker;
class String;

// String is incomplete without doctest.h: as a template argument it is only needed when a message is made.
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
