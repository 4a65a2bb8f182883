// Partial batches and sums of lanes. Included like vector_loops.ipp, under the same rules.
#pragma once

#include <xsimd/xsimd.hpp>

#include <cstddef>

#include "../array/bfloat16.hpp"

namespace tapegrad::detail {
namespace {

#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
template <class Arch> xsimd::batch<float, Arch> widened_floats(const BFloat16* x);  // as many as a batch has lanes
#endif

// The first n < size elements of a batch, without access to memory after them.
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

// bfloat16 as T.
template <class T, class Arch> struct Widened {
  using Batch = xsimd::batch<T, Arch>;
  static constexpr std::size_t kLanes = Batch::size;

  // The first n <= size elements, 0 in the other lanes.
  static Batch load(const BFloat16* x, std::size_t n) {
    if (n == kLanes) return load_whole(x);
    BFloat16 part[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) part[i].bits = i < n ? x[i].bits : 0;
    return load_whole(part);
  }

 private:
  static Batch load_whole(const BFloat16* x);
};

template <class T, class Arch> xsimd::batch<T, Arch> Widened<T, Arch>::load_whole(const BFloat16* x) {
#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
  if constexpr (sizeof(T) == sizeof(float)) return widened_floats<Arch>(x);
#endif
  alignas(64) T lanes[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i)
    lanes[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(x[i].bits) << 16);
  return Batch::load_aligned(lanes);
}

// The sum of all lanes, called reduce_add since xsimd 9.
template <class T, class Arch> T sum_of_lanes(const xsimd::batch<T, Arch>& x) {
  if constexpr (requires { hadd(x); })
    return hadd(x);
  else
    return reduce_add(x);
}

// Lane c of the result is the sum of the lanes of row c; there are as many rows as lanes.
template <class T, class Arch> xsimd::batch<T, Arch> sums_of_lanes(const xsimd::batch<T, Arch>* rows) {
  return xsimd::haddp(rows);
}

}  // namespace
}  // namespace tapegrad::detail

#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
#include "lanes_x86.ipp"
#endif
