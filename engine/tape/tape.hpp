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

  /// Prints a line for each operation and parameter in the order of recording: number, operation, name, shape, inputs,
  /// and the norm of a parameter's gradient. With TapeOptions::profile also the bytes saved for the backward pass, the
  /// times, and after a pass the norm of the gradient; with that or keep_values the operation's arguments.
  void print(std::ostream& out) const;

  /// Writes the recording as a graph for Graphviz: `dot -Tsvg` draws it.
  void to_dot(std::ostream& out) const;

  // find, find_all and nodes show what was recorded before the last backward pass, or everything before the first one:
  // references that a test computes afterwards do not appear.

  /// Finds the one node with this name: a layer's path ("blocks.0.attention", its last operation), a parameter's path,
  /// or a tensor's name. T is the type of its numbers. Needs TapeOptions::keep_values, and names from tg::parameters.
  /// Throws std::out_of_range with the nearest names if there is none, std::invalid_argument if there are several, and
  /// std::logic_error if the tape keeps no values.
  template <class T> Recorded<T> find(std::string_view name) const;

  /// Finds all nodes with a name that matches the pattern, in the order of recording; `*` stands for any characters. A
  /// layer applied twice is found twice. Throws std::logic_error if the tape keeps no values.
  template <class T> std::vector<Recorded<T>> find_all(std::string_view pattern) const;

  /// All operations and parameters on T, in the order of recording. Throws std::logic_error if the tape keeps no
  /// values.
  template <class T> std::vector<Recorded<T>> nodes() const;

  // current(): of this thread's innermost tape. with_number(): of its living tape with this number. Both may be null.
  const std::shared_ptr<detail::Recording>& recording() const { return recording_; }  ///< for the library's sources
  static detail::Recording* current() noexcept;                                       ///< for the library's sources
  static detail::Recording* with_number(std::uint64_t number) noexcept;               ///< for the library's sources

 private:
  friend class NoGrad;
  explicit Tape(std::shared_ptr<detail::Recording> recording) noexcept;

  mutable const Tape* outer_;                     // the next tape of this thread; mutable since a Tape may be const
  std::shared_ptr<detail::Recording> recording_;  // null: a pause
};

}  // namespace tapegrad
