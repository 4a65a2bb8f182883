/// The contents of a tape. For the library's own sources.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>

#include "nodes.hpp"

namespace tapegrad::detail {

/// The contents of one tape, shared by the tape, its running backward pass and pages.
class Recording : public std::enable_shared_from_this<Recording> {
 public:
  explicit Recording(const TapeOptions& options);

  std::uint64_t number() const { return number_; }
  const TapeOptions& options() const { return options_; }
  bool keeps_layers() const { return options_.keep_values || options_.detect_anomaly; }

  template <class T> Nodes<T>& of() {
    if constexpr (std::same_as<T, float>)
      return of_float_;
    else
      return of_double_;
  }
  template <class T> const Nodes<T>& of() const { return const_cast<Recording*>(this)->of<T>(); }

  /// Throws std::logic_error if a backward pass of this tape is running.
  void begin_backward();
  void end_backward() noexcept { in_backward_ = false; }

 private:
  std::uint64_t number_;
  TapeOptions options_;
  bool in_backward_ = false;
  Nodes<float> of_float_;
  Nodes<double> of_double_;
};

}  // namespace tapegrad::detail
