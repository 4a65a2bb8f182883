/// The observers of a tape, selected by its options. For the library's own sources.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../../layers/internal/layer_call.hpp"
#include "anomaly.hpp"
#include "kept_values.hpp"
#include "profile.hpp"

namespace tapegrad::detail {

template <class T> class Observers;

/// The observers of these nodes, or null.
template <class T> Observers<T>* observers_of(const Nodes<T>& nodes) {
  return static_cast<Observers<T>*>(nodes.observer());
}

/// The observers of the nodes on T. The profile is called first at the end of a measured time and last at its start, so
/// it does not measure the other observers.
template <class T> class Observers final : public Observer<T> {
 public:
  Observers(Nodes<T>& nodes, const TapeOptions& options) {
    if (options.profile) profile_.emplace();
    if (options.detect_anomaly) anomaly_.emplace(nodes, options.keep_values);
    if (options.keep_values) kept_.emplace(nodes);
  }

  const std::optional<Profile<T>>& profile() const { return profile_; }
  const std::optional<AnomalyDetector<T>>& anomaly() const { return anomaly_; }
  const std::optional<KeptValues<T>>& kept_values() const { return kept_; }
  /// The layer of a node; null outside of all layers, and if the tape only profiles.
  const LayerCall* layer(std::int32_t node) const {
    return layers_.empty() ? nullptr : layers_[static_cast<std::size_t>(node)].get();
  }

  void reading(const char* operation, const Tensor<T>& x) override {
    if (anomaly_) anomaly_->check_parameter(operation, x);
  }

  void computed(const Operation& operation, const Tensor<T>& y, const Inputs<T>& inputs, const Edges& edges) override {
    if (anomaly_) anomaly_->check_output(operation, y, inputs, edges);
  }

  void recording(std::int32_t node, const Tensor<T>& y, const Inputs<T>& inputs, const Edges& edges,
                 const Rule<T>* rule, const Describe<T>& describe) override {
    if (profile_) profile_->computed();
    if (kept_ || anomaly_) layers_.push_back(shared_open_layer());
    Arguments<T> arguments;
    if (describe.call != nullptr && (kept_ || profile_)) describe(arguments);
    if (kept_) kept_->recording(node, y, inputs, edges, profile_ ? arguments : std::move(arguments));
    if (profile_) profile_->recording(node, y, inputs, rule, arguments);
  }

  void started(Recording& recording, std::int32_t start) override {
    observers_of(recording.of<float>())->forget_backward();
    observers_of(recording.of<double>())->forget_backward();
    if (kept_) kept_->started(start);
  }
  void forget_backward() {
    if (kept_) kept_->started(-1);
    if (anomaly_) anomaly_->started();
  }

  void arrived(std::int32_t node, const GradPointer<T>& dy, bool hooked) override {
    if (kept_) kept_->arrived(node, dy);
    if (anomaly_ && hooked) anomaly_->check_hooked(node, *dy);
    if (profile_) profile_->arrived();
  }

  std::vector<GradPointer<T>>* contributions(std::size_t inputs) override {
    return kept_ ? kept_->contributions(inputs) : nullptr;
  }

  void propagated(std::int32_t node, const Array<T>& dy, Sweep<T>& sweep) override {
    if (profile_) profile_->propagated(node, dy);
    if (kept_) kept_->propagated(node, sweep);
    if (anomaly_) anomaly_->check_gradients(node, sweep);
  }

 private:
  std::optional<Profile<T>> profile_;
  std::optional<AnomalyDetector<T>> anomaly_;
  std::optional<KeptValues<T>> kept_;
  std::vector<std::shared_ptr<const LayerCall>> layers_;  // of each node
};

}  // namespace tapegrad::detail
