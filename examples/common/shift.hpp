/// Inputs and targets of next-token prediction.
#pragma once

#include <tapegrad/tapegrad.hpp>

namespace examples {

/// The model's input, and its targets: the same ids shifted by one position.
struct Shifted {
  tapegrad::IntArray ids, next;  // (B, T)
};

/// ids: (B, T + 1) -> both (B, T)
Shifted shift(const tapegrad::IntArray& ids);

}  // namespace examples
