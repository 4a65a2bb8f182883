/// Pausing the tape.
#pragma once

#include "tape.hpp"

namespace tapegrad {

/// Pauses recording in its scope: results are constants, and operations are as fast as without a tape. A Tape inside it
/// records again.
///
///     tg::NoGrad pause;
///     const double validation = loss(model, held_out).item();
class NoGrad {
 public:
  /// Pauses until the end of the scope.
  NoGrad() noexcept : pause_(nullptr) {}
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Tape pause_;
};

}  // namespace tapegrad
