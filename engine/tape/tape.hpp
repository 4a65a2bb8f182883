/// The tape: what records operations, from its construction to the end of its scope.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>

#include "scope.hpp"
#include "tape_options.hpp"

namespace tapegrad {

/// Records this thread's operations from its construction to the end of its scope. Tapes nest: the innermost records.
/// Without a tape operations compute values alone. Not copied, not moved; destroyed on the thread that made it, or else
/// the program ends with a message. A tape that ends in a hook or rule of its own sweep lets the sweep finish.
class Tape {
 public:
  /// Records from here on.
  explicit Tape(const TapeOptions& options = {});
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Whether operations of this thread are recorded now: there is a tape, and no NoGrad within it.
  static bool records() noexcept { return detail::TapeScope::current() != nullptr; }

  /// Operations and parameters recorded so far.
  std::size_t size() const;

  /// Prints a line for each operation and parameter in the order of recording: its number, the operation, its name or
  /// the parameter's path, its shape, the numbers of what it read, and of a parameter the norm of the gradient that it
  /// has gathered. With TapeOptions::profile also how many bytes an operation saved for the sweep, the times forward
  /// and backward, and after a sweep the norm of its gradient.
  void print(std::ostream& out) const;

  /// Writes the recording as a graph for Graphviz: `dot -Tsvg` draws it.
  void to_dot(std::ostream& out) const;

  /// What is recorded; for the library's own sources.
  const detail::Recordings& recordings() const { return *recordings_; }

 private:
  std::shared_ptr<detail::Recordings> recordings_;
  detail::TapeScope scope_;
};

/// Pauses recording in its scope: what is computed there is a constant, and costs what it costs without a tape. A Tape
/// made within it records again.
///
///     tg::NoGrad pause;
///     const double validation = loss(model, held_out).item();
class NoGrad {
 public:
  /// Pauses from here on.
  NoGrad() noexcept : scope_(nullptr, 0) {}
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  detail::TapeScope scope_;
};

}  // namespace tapegrad
