/// The tape: records operations from its construction to the end of its scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string_view>
#include <vector>

namespace tapegrad {
namespace detail {
class Recording;
}
template <class T> class Recorded;

/// Optional work of a tape besides recording.
struct TapeOptions {
  bool profile = false;  ///< measure each operation's saved bytes, times and gradient for Tape::print

  /// Check every value and gradient. Where the first NaN or infinity appears, throw std::runtime_error with the
  /// operation, its inputs and the layer. A non-finite parameter is reported before an operation reads it.
  /// Infinity from an input, such as the value of masked_fill, may pass.
  bool detect_anomaly = false;

  /// Keep every value recorded or read, and the last backward pass's gradients and contributions, until the tape ends.
  /// Sums of several contributions may differ from other tapes' in the last digits.
  bool keep_values = false;
};

/// Records this thread's operations from its construction to the end of its scope. Tapes nest: the innermost records.
/// Without a tape operations only compute values. A tape must be destroyed on its own thread, or else the program ends
/// with a message. If a hook or rule ends the calling tape, the backward pass still finishes.
class Tape {
 public:
  /// Records from now on.
  explicit Tape(const TapeOptions& options = {});
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// True if operations of this thread are being recorded: there is a tape, and no NoGrad within it.
  static bool records() noexcept { return current() != nullptr; }

  /// The number of operations and parameters recorded so far.
  std::size_t size() const;

  /// Prints the operations and parameters in the order of recording, with shapes, inputs and norms of gradients. With
  /// TapeOptions::profile also bytes saved for the backward pass and times; with that or keep_values also arguments.
  void print(std::ostream& out) const;

  /// Writes the recording as a graph for Graphviz: `dot -Tsvg` draws it.
  void to_dot(std::ostream& out) const;

  /// Looks up one entry by its name, all entries that match a pattern, or every entry: see Recorded.
  template <class T> Recorded<T> find(std::string_view name) const;
  template <class T> std::vector<Recorded<T>> find_all(std::string_view pattern) const;  ///< `*`: any characters
  template <class T> std::vector<Recorded<T>> nodes() const;                             ///< in order
  const std::shared_ptr<detail::Recording>& recording() const { return recording_; }     ///< for the library's sources
  static detail::Recording* current() noexcept;  ///< the same, of this thread's innermost tape or null
  static detail::Recording* with_number(std::uint64_t number) noexcept;  ///< the same, of its living tape or null

 private:
  friend class NoGrad;
  explicit Tape(std::shared_ptr<detail::Recording> recording) noexcept;

  mutable const Tape* outer_;                     // the next tape of this thread; mutable since a Tape may be const
  std::shared_ptr<detail::Recording> recording_;  // null: a pause
};

}  // namespace tapegrad
