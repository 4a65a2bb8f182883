/// The observers of a tape, selected by its options. For the library's own sources.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "anomaly.hpp"
#include "kept_values.hpp"
#include "layer_call.hpp"
#include "profile.hpp"
#include "recording.hpp"

namespace tapegrad::detail {

/// The observers of the nodes on T. The profile is called first at the end of a measured time and last at its start, so
/// it does not measure the other observers.
template <class T> class Observers {
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

  /// An operation is about to read a parameter.
  void reading(const char* operation, const Tensor<T>& x) {
    if (anomaly_) anomaly_->check_parameter(operation, x);
  }

  /// An operation has computed y, which may stay unrecorded.
  void computed(const Operation& operation, const Tensor<T>& y, const Inputs<T>& inputs, const Edges& edges) {
    if (anomaly_) anomaly_->check_output(operation, y, inputs, edges);
  }

  /// A node is about to be appended: an operation, or a parameter, without a rule.
  void recording(std::int32_t node, const Tensor<T>& y, const Inputs<T>& inputs, const Edges& edges,
                 const Rule<T>* rule, const Describe<T>& describe) {
    if (profile_) profile_->computed();
    if (kept_ || anomaly_) layers_.push_back(shared_open_layer());
    Arguments<T> arguments;
    if (describe.call != nullptr && (kept_ || profile_)) describe(arguments);
    if (kept_) kept_->recording(node, y, inputs, edges, profile_ ? arguments : std::move(arguments));
    if (profile_) profile_->recording(node, y, inputs, rule, arguments);
  }

  /// A backward pass starts at a node on T.
  void started(Recording& recording, std::int32_t start) {
    recording.of<float>().observers()->forget_backward();
    recording.of<double>().observers()->forget_backward();
    if (kept_) kept_->started(start);
  }
  void forget_backward() {
    if (kept_) kept_->started(-1);
    if (anomaly_) anomaly_->started();
  }

  /// The gradient of a node's output is complete; null if it received none. `hooked` if hooks were called.
  void arrived(std::int32_t node, const GradPointer<T>& dy, bool hooked) {
    if (kept_) kept_->arrived(node, dy);
    if (anomaly_ && hooked) anomaly_->check_hooked(node, *dy);
    if (profile_) profile_->arrived();
  }

  /// Where a rule adds to each input's gradient; null for the sums of the backward pass.
  std::vector<GradPointer<T>>* contributions(std::size_t inputs) {
    return kept_ ? kept_->contributions(inputs) : nullptr;
  }

  /// A node's rule has run.
  void propagated(std::int32_t node, const Array<T>& dy, Sweep<T>& sweep) {
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
