#include "internal/profile.hpp"

#include <algorithm>
#include <cmath>

namespace tapegrad::detail {

template <class T> double norm(const Array<T>& x) {
  double squares = 0;
  for (const T& element : x) squares += static_cast<double>(element) * static_cast<double>(element);
  return std::sqrt(squares);
}

template <class T>
void Profile<T>::recording(std::int32_t node, const Tensor<T>& y, const Inputs<T>& inputs, const Rule<T>* rule,
                           const Arguments<T>& arguments) {
  entries_.resize(static_cast<std::size_t>(node) + 1);
  if (rule == nullptr) return;  // a parameter
  std::vector<Value<T>> values{y.shared_value()};
  for (const Input<T>& input : inputs)
    if (input.tensor->defined()) values.push_back(input.tensor->shared_value());
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  entries_.back() = {.saved = rule->saved_bytes(values), .forward = forward_, .arguments = to_string(arguments)};
  idle_since_ = Clock::now();
}

template <class T> void Profile<T>::propagated(std::int32_t node, const Array<T>& dy) {
  Entry& entry = entries_[static_cast<std::size_t>(node)];
  entry.backward = seconds_since(rule_began_);
  entry.gradient_norm = norm(dy);
}

template double norm(const Array<float>&);
template double norm(const Array<double>&);
template class Profile<float>;
template class Profile<double>;

}  // namespace tapegrad::detail
