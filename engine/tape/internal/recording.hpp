/// What a tape has recorded. For the library's own sources.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>

#include "nodes.hpp"

namespace tapegrad::detail {

/// All that one tape has recorded. Outlives the tape if a backward pass or a page still uses it.
class Recording : public std::enable_shared_from_this<Recording> {
 public:
  explicit Recording(const TapeOptions& options);

  std::uint64_t number() const { return number_; }
  const TapeOptions& options() const { return options_; }

  template <class T> Nodes<T>& of() {
    if constexpr (std::same_as<T, float>)
      return of_float_;
    else
      return of_double_;
  }
  template <class T> const Nodes<T>& of() const { return const_cast<Recording*>(this)->of<T>(); }

  /// Called by the one backward pass that may run at a time.
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
