/// Pausing the tape.
#pragma once

#include "tape.hpp"

namespace tapegrad {

/// Pauses recording in its scope: results are constants, at the cost of no tape. A Tape inside it records again.
///
///     tg::NoGrad pause;
///     const double validation = loss(model, held_out).item();
class NoGrad {
 public:
  /// Pauses from now on.
  NoGrad() noexcept : pause_(nullptr) {}
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Tape pause_;
};

}  // namespace tapegrad
