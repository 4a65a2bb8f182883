#include "doctest.hpp"

#include <xtensor/xio.hpp>

#include <sstream>

namespace tapegrad::detail {

template <class T> std::string array_text(const Array<T>& array) {
  std::ostringstream text;
  text << to_string(array.shape()) << ' ' << array;
  return text.str();
}

template std::string array_text(const Array<float>&);
template std::string array_text(const Array<double>&);
template std::string array_text(const IntArray&);
template std::string array_text(const BoolArray&);

}  // namespace tapegrad::detail
