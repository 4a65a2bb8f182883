/// The squares of an array's elements. For the library's own sources.
#pragma once

#include <cstddef>
#include <numeric>

#include "../../engine/kernels/instruction_sets.hpp"

namespace tapegrad::detail {

/// The sum on this thread. In double, where the square of a float neither overflows nor vanishes. Uses enough sums to
/// fill the registers, since the compiler keeps the order of additions within each.
template <class T> double sum_of_squares_on_this_thread(const T* x, std::size_t n) {
  constexpr std::size_t kSums = 16;
  double sums[kSums] = {};
  const auto add = [&](std::size_t i, std::size_t sum) {
    const auto a = static_cast<double>(x[i]);
    sums[sum] += a * a;
  };
  std::size_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (std::size_t sum = 0; sum < kSums; ++sum) add(i + sum, sum);
  for (std::size_t sum = 0; i < n; ++i, ++sum) add(i, sum);
  return std::accumulate(sums, sums + kSums, 0.0);
}

/// The same on all threads.
template <class T> double sum_of_squares(const T* x, std::size_t n) {
  double sums[kMaxChunks] = {};
  parallel_vectorized(n, [&](std::size_t begin, std::size_t end, std::size_t chunk) {
    sums[chunk] = sum_of_squares_on_this_thread(x + begin, end - begin);
  });
  return std::accumulate(sums, sums + kMaxChunks, 0.0);
}

}  // namespace tapegrad::detail
