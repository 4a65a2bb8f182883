#include "dropout.hpp"

#include "../engine/array/internal/error.hpp"

namespace tapegrad {

Dropout::Dropout(double probability) : p(probability) {
  detail::require(p >= 0 && p < 1, "Dropout", "expected a probability p in [0, 1), got ", p);
}

}  // namespace tapegrad
