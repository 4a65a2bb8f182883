// AdamW's step as a plain loop, compiled for this processor: -O3 -march=native -ffast-math.
#include <cmath>
#include <cstddef>

void adamw_loop(float* p, const float* g, float* m, float* v, std::size_t n, float decay, float b1, float b2,
                float rate, float scale, float eps) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = b1 * m[i] + (1 - b1) * g[i];
    v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
    p[i] = decay * p[i] - rate * m[i] / (std::sqrt(v[i]) * scale + eps);
  }
}
