#include "print_values.hpp"

#include <xtensor/xio.hpp>

#include <ostream>

namespace tapegrad {

template <class T> std::ostream& operator<<(std::ostream& out, const Tensor<T>& tensor) {
  const char* element = std::same_as<T, float> ? "float" : "double";
  if (!tensor.defined()) return out << "Tensor<" << element << "> undefined";
  return out << tensor.value() << "\nTensor<" << element << "> " << to_string(tensor.shape());
}

template <class T> std::ostream& operator<<(std::ostream& out, const Array<T>& array) {
  return xt::operator<<(out, array);
}

template std::ostream& operator<<(std::ostream&, const Tensor<float>&);
template std::ostream& operator<<(std::ostream&, const Tensor<double>&);
template std::ostream& operator<<(std::ostream&, const Array<float>&);
template std::ostream& operator<<(std::ostream&, const Array<double>&);
template std::ostream& operator<<(std::ostream&, const IntArray&);
template std::ostream& operator<<(std::ostream&, const BoolArray&);

}  // namespace tapegrad
