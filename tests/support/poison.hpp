/// Fills memory with NaN, for tests of memory that must be written before it is read.
#pragma once

#include <tapegrad/engine/array/pool.hpp>

#include <array>
#include <cstddef>
#include <cstring>

/// Leaves four idle blocks of this size in this thread's pool with all bits set, NaN in float and double. The next
/// arrays of this size reuse them.
inline void poison(std::size_t bytes) {
  std::array<void*, 4> blocks;
  for (void*& block : blocks) std::memset(block = tapegrad::detail::pool_allocate(bytes), 0xFF, bytes);
  for (void* block : blocks) tapegrad::detail::pool_deallocate(block, bytes);
}

/// The same for blocks of all sizes up to 64 KB.
inline void poison_pool() {
  // The pool has a size class every 64 bytes and, above 512, every eighth of a doubling.
  for (std::size_t bytes = 64, step = 64; bytes <= std::size_t{1} << 16; bytes += step) {
    poison(bytes);
    if (bytes >= 1024 && (bytes & (bytes - 1)) == 0) step = bytes / 8;
  }
}
