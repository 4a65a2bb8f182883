// The lanes of a batch: a part of them, and their sums. Included where vector_loops.ipp is, whose rules hold here, too.
#pragma once

#include <xsimd/xsimd.hpp>

#include <cstddef>

namespace tapegrad::detail {
namespace {

// The first n < size elements of a batch, from and to memory that may end after them.
template <class T, class Arch> struct Part {
  using Batch = xsimd::batch<T, Arch>;
  static constexpr std::size_t kLanes = Batch::size;

  static Batch load(const T* x, std::size_t n, T fill) {
    alignas(64) T lanes[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = i < n ? x[i] : fill;
    return Batch::load_aligned(lanes);
  }
  static void store(const Batch& batch, T* y, std::size_t n) {
    alignas(64) T lanes[kLanes];
    batch.store_aligned(lanes);
    for (std::size_t i = 0; i < n; ++i) y[i] = lanes[i];
  }
};

// The sum of all lanes, whose function is reduce_add from xsimd 9 on.
template <class T, class Arch> T sum_of_lanes(const xsimd::batch<T, Arch>& x) {
  if constexpr (requires { hadd(x); })
    return hadd(x);
  else
    return reduce_add(x);
}

// Lane c of the result is the sum of the lanes of row c, of as many rows as there are lanes.
template <class T, class Arch> xsimd::batch<T, Arch> sums_of_lanes(const xsimd::batch<T, Arch>* rows) {
  return xsimd::haddp(rows);
}

}  // namespace
}  // namespace tapegrad::detail

#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
#include "lanes_x86.ipp"
#endif
