/// The settings of a tape.
#pragma once

namespace tapegrad {

/// What a tape does besides recording.
struct TapeOptions {
  bool profile = false;  ///< keep for Tape::print what each operation saved, took, and received as gradient
  /// Check every value and gradient: where the first NaN or infinity appears, forward or backward, throw
  /// std::runtime_error naming the operation, its inputs and the path of the layer that it is in or comes after; a
  /// parameter that is not finite is named before an operation computes with it. Infinity that came in with an input,
  /// as the value that masked_fill fills in, is let pass.
  bool detect_anomaly = false;
  /// Keep every value that is recorded or read, and of the last sweep every gradient and what each rule added to it, to
  /// be looked at until the tape ends. Takes the memory of all of them; gradients that several operations add to may
  /// differ from those of other tapes in their last digits.
  bool keep_values = false;
};

}  // namespace tapegrad
