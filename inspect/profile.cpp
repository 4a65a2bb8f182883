#include "internal/profile.hpp"

#include <algorithm>
#include <cmath>

namespace tapegrad::detail {

template <class T> double norm(const Array<T>& x) {
  double squares = 0;
  for (const T& element : x) squares += static_cast<double>(element) * static_cast<double>(element);
  return std::sqrt(squares);
}

// The arrays that an operation's rule may share, each once.
template <class T>
static std::vector<SharedArray> shared_arrays(const Tensor<T>& y, const Inputs<T>& inputs,
                                              const Arguments<T>& arguments) {
  std::vector<SharedArray> shared;
  const auto add = [&]<class X>(const Value<X>& x) {
    if (x && std::ranges::find(shared, x, &SharedArray::array) == shared.end())
      shared.push_back({x, x->size() * sizeof(X)});
  };
  add(y.shared_value());
  for (const Input<T>& input : inputs) add(input.tensor->shared_value());
  for (const auto& argument : arguments.arguments())
    std::visit(
        [&](const auto& x) {
          if constexpr (requires { add(x); }) add(x);
        },
        argument.value);
  return shared;
}

template <class T>
void Profile<T>::recording(std::int32_t node, const Tensor<T>& y, const Inputs<T>& inputs, const Rule<T>* rule,
                           const Arguments<T>& arguments) {
  entries_.resize(static_cast<std::size_t>(node) + 1);
  if (rule == nullptr) return;  // a parameter
  entries_.back() = {.saved = rule->saved_bytes(shared_arrays(y, inputs, arguments)),
                     .forward = forward_,
                     .arguments = to_string(arguments)};
  forward_start_ = Clock::now();
}

template <class T> void Profile<T>::propagated(std::int32_t node, const Array<T>& dy) {
  Entry& entry = entries_[static_cast<std::size_t>(node)];
  entry.backward = seconds_since(rule_start_);
  entry.gradient_norm = norm(dy);
}

template double norm(const Array<float>&);
template double norm(const Array<double>&);
template class Profile<float>;
template class Profile<double>;

}  // namespace tapegrad::detail
