/// Attention in plain loops over doubles, the reference for the examples.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace by_loops {

using Numbers = tapegrad::Array<double>;  // a container only: the library's operations are not used here
using tapegrad::Shape;

// If inlined, GCC 12 warns about an uninitialized shape.
[[gnu::noinline]] inline Numbers zeros(const Shape& shape) { return Numbers(shape, 0.0); }

inline Numbers transposed(const Numbers& a) {  // (m, n) -> (n, m)
  Numbers b = zeros({a.shape()[1], a.shape()[0]});
  for (std::size_t i = 0; i < a.shape()[0]; ++i)
    for (std::size_t j = 0; j < a.shape()[1]; ++j) b(j, i) = a(i, j);
  return b;
}

inline Numbers product(const Numbers& a, const Numbers& b) {  // (m, n) (n, p) -> (m, p)
  Numbers c = zeros({a.shape()[0], b.shape()[1]});
  for (std::size_t i = 0; i < a.shape()[0]; ++i)
    for (std::size_t j = 0; j < b.shape()[1]; ++j)
      for (std::size_t k = 0; k < a.shape()[1]; ++k) c(i, j) += a(i, k) * b(k, j);
  return c;
}

/// Adds b to every row. a: (m, n), b: (n), or empty for no bias
inline Numbers plus_bias(Numbers a, const Numbers& b) {
  for (std::size_t i = 0; i < a.size() && b.dimension() == 1; ++i) a.data()[i] += b(i % b.size());
  return a;
}

inline Numbers scaled(Numbers a, double factor) {
  for (double& x : a) x *= factor;
  return a;
}

/// Softmax by definition over every row of a matrix or of matrices.
inline Numbers softmax(Numbers a) {
  const std::size_t n = a.shape().back();
  for (std::size_t row = 0; row < a.size(); row += n) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += std::exp(a.data()[row + j]);
    for (std::size_t j = 0; j < n; ++j) a.data()[row + j] = std::exp(a.data()[row + j]) / sum;
  }
  return a;
}

/// Entry i of the first axis.
inline Numbers entry(const Numbers& a, std::size_t i) {
  Numbers b(Shape(a.shape().begin() + 1, a.shape().end()));
  std::copy_n(a.data() + i * b.size(), b.size(), b.data());
  return b;
}

/// Stacks entries along a new first axis.
inline Numbers stacked(const std::vector<Numbers>& entries) {
  Shape shape{entries.size()};
  for (const std::size_t extent : entries[0].shape()) shape.push_back(extent);
  Numbers a(shape);
  for (std::size_t i = 0; i < entries.size(); ++i)
    std::copy_n(entries[i].data(), entries[i].size(), a.data() + i * entries[i].size());
  return a;
}

/// True if query t of batch entry b may attend to key s.
using Allowed = std::function<bool(std::size_t b, std::size_t t, std::size_t s)>;
inline bool all_allowed(std::size_t, std::size_t, std::size_t) { return true; }

/// Multi-head attention. Weights are (out, in), like Linear's; biases may be empty.
struct Attention {
  Numbers wq, wk, wv, wo, bq, bk, bv, bo;
  std::size_t heads = 1;

  /// queries: (B, T, D), keys: (B, S, D) -> (B, H, T, S), over allowed keys only
  Numbers weights(const Numbers& queries, const Numbers& keys, const Allowed& allowed) const {
    const std::size_t batch = queries.shape()[0], t_count = queries.shape()[1], s_count = keys.shape()[1];
    const std::size_t d = wq.shape()[0] / heads;
    Numbers p = zeros({batch, heads, t_count, s_count});
    for (std::size_t b = 0; b < batch; ++b) {
      const Numbers q = plus_bias(product(entry(queries, b), transposed(wq)), bq);
      const Numbers k = plus_bias(product(entry(keys, b), transposed(wk)), bk);
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t t = 0; t < t_count; ++t) {
          double sum = 0;
          for (std::size_t s = 0; s < s_count; ++s) {
            if (!allowed(b, t, s)) continue;
            double score = 0;
            for (std::size_t i = h * d; i < (h + 1) * d; ++i) score += q(t, i) * k(s, i);
            sum += p(b, h, t, s) = std::exp(score / std::sqrt(static_cast<double>(d)));
          }
          for (std::size_t s = 0; s < s_count; ++s) p(b, h, t, s) /= sum;
        }
    }
    return p;
  }

  /// queries: (B, T, D), keys and values: (B, S, D) -> (B, T, D)
  Numbers operator()(const Numbers& queries, const Numbers& keys, const Allowed& allowed) const {
    const Numbers p = weights(queries, keys, allowed);
    std::vector<Numbers> outputs;
    for (std::size_t b = 0; b < queries.shape()[0]; ++b) {
      const Numbers v = plus_bias(product(entry(keys, b), transposed(wv)), bv);
      Numbers z = zeros({queries.shape()[1], v.shape()[1]});
      for (std::size_t t = 0; t < z.shape()[0]; ++t)
        for (std::size_t i = 0; i < z.shape()[1]; ++i)
          for (std::size_t s = 0; s < v.shape()[0]; ++s) z(t, i) += p(b, i / (z.shape()[1] / heads), t, s) * v(s, i);
      outputs.push_back(wo.dimension() == 2 ? plus_bias(product(z, transposed(wo)), bo) : z);
    }
    return stacked(outputs);
  }
};

inline double mean_square(const Numbers& a) {
  double sum = 0;
  for (const double x : a) sum += x * x;
  return sum / static_cast<double>(a.size());
}

/// The gradient of f at x by central differences. Restores x after each change.
inline Numbers gradient(Numbers& x, const std::function<double()>& f) {
  Numbers g = zeros(x.shape());
  constexpr double step = 1e-5;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double before = x.data()[i];
    x.data()[i] = before + step;
    const double above = f();
    x.data()[i] = before - step;
    g.data()[i] = (above - f()) / (2 * step);
    x.data()[i] = before;
  }
  return g;
}

}  // namespace by_loops
