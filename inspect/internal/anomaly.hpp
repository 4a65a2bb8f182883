/// Observer of TapeOptions::detect_anomaly. For the library's own sources.
#pragma once

#include <optional>
#include <string>

#include "../../engine/tape/internal/recording.hpp"

namespace tapegrad::detail {

/// Throws std::runtime_error where NaN or infinity first appears.
template <class T> class AnomalyDetector {
 public:
  /// `keep` stores the anomaly for readers of the tape.
  AnomalyDetector(Nodes<T>& nodes, bool keep) : nodes_(nodes), keep_(keep) {}

  /// Where NaN or infinity was found since the last backward pass started, if kept.
  struct Anomaly {
    std::int32_t node;  // the operation that produced it, or the parameter that contains it
    bool backward;      // produced by the operation's rule, or by a hook on its output's gradient
    std::string text;   // the error message
  };
  const std::optional<Anomaly>& found() const { return found_; }

  void check_parameter(const char* operation, const Tensor<T>& x);
  void check_output(const Operation& operation, const Tensor<T>& y, const Inputs<T>& inputs, const Edges& edges);
  void started() { found_.reset(); }
  void check_hooked(std::int32_t node, const Array<T>& gradient);
  void check_gradients(std::int32_t node, Sweep<T>& sweep);

 private:
  [[noreturn]] void fail_at(std::int32_t node, bool backward, std::string text);
  std::string described(std::int32_t node) const;
  std::string described(const Tensor<T>& x, std::int32_t node) const;

  Nodes<T>& nodes_;
  const bool keep_;
  std::optional<Anomaly> found_;
};

}  // namespace tapegrad::detail
