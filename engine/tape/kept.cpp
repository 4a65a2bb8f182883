// What a tape keeps to be looked at: TapeOptions::keep_values.
#include "../kernels/strided.hpp"
#include "internal/recording.hpp"

namespace tapegrad::detail {

// Of the node that is about to be appended. Should that fail, the next one takes its place.
template <class T> void Recording<T>::keep(const Tensor<T>& y, std::span<const Input<T>> inputs, const Edges& edges) {
  KeptNode<T> kept{.value = y.shared_value(), .constants = {}, .beside = {}, .gradient = {}, .contributions = {}};
  kept.constants.resize(inputs.size());
  for (std::size_t n = 0; n < inputs.size(); ++n)
    if (edges[n] < 0) kept.constants[n] = {inputs[n].tensor->shared_value(), inputs[n].tensor->name()};
  kept_.resize(nodes_.size() + 1);
  kept_.back() = std::move(kept);
}

template <class T> void Recording<T>::keep_beside(const Tensor<T>& y, const char* name, Array<T> array) {
  kept_[static_cast<std::size_t>(y.origin_.node)].beside[name] = make_value<T>(std::move(array));
  if (options_.profile) last_recorded_ = Clock::now();  // the next operation has not taken the time for it
}

template <class T> void Recording<T>::forget_sweep() {
  last_start_ = -1;
  anomaly_.reset();
  for (KeptNode<T>& kept : kept_) {
    kept.reached = false;
    kept.gradient.reset();
    kept.contributions.clear();
  }
}

template <class T> void Recording<T>::keep_gradient(std::int32_t i, const std::shared_ptr<Array<T>>& dy) {
  KeptNode<T>& kept = kept_[static_cast<std::size_t>(i)];
  kept.reached = true;
  kept.gradient = dy;
}

// The sweep goes on with the sums. What a rule made is never changed: the first of several is copied to be added to.
template <class T> void Recording<T>::add_up_contributions(std::int32_t i) {
  for (std::size_t n = 0; n < contributions_.size(); ++n) {
    if (!contributions_[n]) continue;
    std::shared_ptr<Array<T>>& sum = node(node(i).inputs[n]).grad;
    if (!sum) {
      sum = contributions_[n];
    } else {
      sum = unshared(sum);
      add_summed(*sum, *contributions_[n]);
    }
  }
  kept_[static_cast<std::size_t>(i)].contributions.assign(contributions_.begin(), contributions_.end());
  contributions_.clear();
}

#define INSTANTIATE(T)                                                                         \
  template void Recording<T>::keep_beside(const Tensor<T>&, const char*, Array<T>);            \
  template void Recording<T>::keep(const Tensor<T>&, std::span<const Input<T>>, const Edges&); \
  template void Recording<T>::forget_sweep();                                                  \
  template void Recording<T>::keep_gradient(std::int32_t, const std::shared_ptr<Array<T>>&);   \
  template void Recording<T>::add_up_contributions(std::int32_t);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad::detail
