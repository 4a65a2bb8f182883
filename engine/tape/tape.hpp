/// The tape: what records operations, from its construction to the end of its scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>

namespace tapegrad {

/// What a tape does besides recording.
struct TapeOptions {
  bool profile = false;  ///< keep for Tape::print what each operation saved, took, and received as gradient
  /// Check every value and gradient: where the first NaN or infinity appears, forward or backward, throw
  /// std::runtime_error naming the operation, its inputs and the path of the layer that it is in or comes after; a
  /// parameter that is not finite is named before an operation computes with it. Infinity that came in with an input,
  /// as the value that masked_fill fills in, is let pass.
  bool detect_anomaly = false;
};

namespace detail {

class Recordings;

/// A link in this thread's chain of tapes and pauses; the innermost, made last, says what is recorded.
class TapeScope {
 public:
  explicit TapeScope(Recordings* recordings) noexcept;
  ~TapeScope();
  TapeScope(const TapeScope&) = delete;
  TapeScope& operator=(const TapeScope&) = delete;

  /// What this thread's operations are recorded in now; null for nothing.
  static Recordings* current() noexcept;

  /// This thread's living tape of that number, or null.
  static Recordings* find(std::uint64_t tape) noexcept;

 private:
  mutable const TapeScope* outer_;  // mutable since a Tape may be const
  Recordings* recordings_;          // null for a pause
};

}  // namespace detail

/// Records this thread's operations from its construction to the end of its scope. Tapes nest: the innermost records.
/// Without a tape operations compute values alone. Not copied, not moved; destroyed on the thread that made it, or else
/// the program ends with a message. A tape that ends in a hook or rule of its own sweep lets the sweep finish.
class Tape {
 public:
  explicit Tape(const TapeOptions& options = {});
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Whether operations of this thread are recorded now: there is a tape, and no NoGrad within it.
  static bool records() noexcept { return detail::TapeScope::current() != nullptr; }

  /// Operations and parameters recorded so far.
  std::size_t size() const;

  /// Prints a line for each operation and parameter in the order of recording: its number, the operation, its name or
  /// the parameter's path, its shape, the numbers of what it read; with TapeOptions::profile also how many bytes it
  /// saved for the sweep, the times forward and backward, and after a sweep the norm of its gradient.
  void print(std::ostream& out) const;

  /// Writes the recording as a graph for Graphviz: `dot -Tsvg` draws it.
  void to_dot(std::ostream& out) const;

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
  NoGrad() noexcept : scope_(nullptr) {}
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  detail::TapeScope scope_;
};

}  // namespace tapegrad
