/// Which tape records on a thread: the chain of those that live there.
#pragma once

#include <cstdint>

namespace tapegrad {

namespace detail {

class Recordings;

/// A link in this thread's chain of tapes and pauses; the innermost, made last, says what is recorded.
class TapeScope {
 public:
  TapeScope(Recordings* recordings, std::uint64_t tape) noexcept;
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
  std::uint64_t tape_;              // its number
};

}  // namespace detail

}  // namespace tapegrad
