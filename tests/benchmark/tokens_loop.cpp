// Reads memory in a loop compiled for this processor: -O3 -march=native -ffast-math.
#include <cstddef>

float sum_loop(const float* x, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}
