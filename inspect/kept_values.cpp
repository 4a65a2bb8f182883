#include "internal/kept_values.hpp"

#include "../engine/tape/internal/sweep.hpp"

namespace tapegrad::detail {

template <class T>
void KeptValues<T>::recording(std::int32_t node, const Tensor<T>& y, const Inputs<T>& inputs, const Edges& edges,
                              Arguments<T> arguments) {
  Entry entry{.value = y.shared_value(), .arguments = std::move(arguments)};
  entry.constants.resize(inputs.size());
  for (std::size_t n = 0; n < inputs.size(); ++n)
    if (edges[n] < 0) entry.constants[n] = {inputs[n].tensor->shared_value(), inputs[n].tensor->name()};
  entries_.resize(static_cast<std::size_t>(node) + 1);
  entries_.back() = std::move(entry);
}

template <class T> void KeptValues<T>::started(std::int32_t start) {
  start_ = start;
  for (Entry& entry : entries_) {
    entry.reached = false;
    entry.gradient.reset();
    entry.contributions.clear();
  }
}

template <class T> void KeptValues<T>::arrived(std::int32_t node, const GradPointer<T>& dy) {
  entries_[static_cast<std::size_t>(node)].reached = true;
  entries_[static_cast<std::size_t>(node)].gradient = dy;
}

template <class T> std::vector<GradPointer<T>>* KeptValues<T>::contributions(std::size_t inputs) {
  contributions_.assign(inputs, nullptr);
  return &contributions_;
}

// The backward pass continues with the sums of the contributions.
template <class T> void KeptValues<T>::propagated(std::int32_t node, Sweep<T>& sweep) {
  for (std::size_t n = 0; n < contributions_.size(); ++n)
    if (contributions_[n]) sweep.add(nodes_[node].inputs[n], contributions_[n]);
  entries_[static_cast<std::size_t>(node)].contributions.assign(contributions_.begin(), contributions_.end());
  contributions_.clear();
}

template class KeptValues<float>;
template class KeptValues<double>;

}  // namespace tapegrad::detail
