/// What a language model learns from ids: after each, the one that follows.
#pragma once

#include <tapegrad/tapegrad.hpp>

/// What goes into the model, and what it is to say: the ids one place further on.
struct Shifted {
  tapegrad::IntArray ids, next;  // (B, T)
};

/// ids: (B, T + 1) -> both (B, T)
Shifted shift(const tapegrad::IntArray& ids);
