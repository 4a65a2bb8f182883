/// Observer of TapeOptions::profile. For the library's own sources.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "../../engine/tape/internal/recording.hpp"

namespace tapegrad::detail {

/// The Euclidean norm of all elements.
template <class T> double norm(const Array<T>& x);

/// Measures each operation. Times are in seconds.
template <class T> class Profile {
 public:
  struct Entry {
    std::size_t saved = 0;     // bytes that the rule holds for the backward pass
    double forward = 0;        // since the previous operation was recorded
    double backward = -1;      // in the rule; negative before a backward pass
    double gradient_norm = 0;  // of the output's gradient in that pass
    std::string arguments{};   // as printed
  };

  /// Of each node. Parameters have zeros.
  const std::vector<Entry>& entries() const { return entries_; }

  void computed() { forward_ = seconds_since(forward_start_); }
  void recording(std::int32_t node, const Tensor<T>& y, const Inputs<T>& inputs, const Rule<T>* rule,
                 const Arguments<T>& arguments);
  void arrived() { rule_start_ = Clock::now(); }
  void propagated(std::int32_t node, const Array<T>& dy);

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

  std::vector<Entry> entries_;
  double forward_ = 0;
  Clock::time_point forward_start_ = Clock::now(), rule_start_;
};

}  // namespace tapegrad::detail
