/// Memory for arrays: aligned blocks from a bounded pool per thread. Repeated training steps allocate nothing anew.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace tapegrad {

namespace detail {

void* pool_allocate(std::size_t bytes);  ///< A block of at least `bytes` bytes, 64-byte aligned. Throws std::bad_alloc.

void pool_deallocate(void* block, std::size_t bytes) noexcept;  ///< Frees pool_allocate(bytes), on any thread.

void pool_release_idle() noexcept;  ///< Returns this thread's idle blocks to the system.

/// The bytes of numbers that this thread allocated for arrays minus the bytes it freed.
inline thread_local std::ptrdiff_t array_bytes_in_use = 0;

}  // namespace detail

/// Blocks allocated by this thread minus blocks it freed, including other threads' blocks.
std::ptrdiff_t pool_blocks_in_use() noexcept;

/// A standard allocator that uses the pool.
template <class T> struct PoolAllocator {
  using value_type = T;  ///< the element

  PoolAllocator() noexcept = default;
  template <class U> PoolAllocator(const PoolAllocator<U>&) noexcept {}  ///< uses the same pool

  /// Memory for `count` elements. Throws std::bad_alloc.
  T* allocate(std::size_t count) {
    // Above half of what ptrdiff_t can count, sums of sizes would overflow. No system has so much memory.
    if (count > std::numeric_limits<std::size_t>::max() / 4 / sizeof(T)) throw std::bad_alloc();
    T* const block = static_cast<T*>(detail::pool_allocate(count * sizeof(T)));
    if constexpr (std::is_arithmetic_v<T>) detail::array_bytes_in_use += static_cast<std::ptrdiff_t>(count * sizeof(T));
    return block;
  }
  /// Frees allocate(count), on any thread.
  void deallocate(T* block, std::size_t count) noexcept {
    if constexpr (std::is_arithmetic_v<T>)
      if (block != nullptr) detail::array_bytes_in_use -= static_cast<std::ptrdiff_t>(count * sizeof(T));
    detail::pool_deallocate(block, count * sizeof(T));
  }

  template <class U> bool operator==(const PoolAllocator<U>&) const noexcept { return true; }  ///< always
};

namespace detail {

/// A shared object, next to its reference count in a block of the pool.
template <class X, class... Arguments> std::shared_ptr<X> make_pooled(Arguments&&... arguments) {
  using Object = std::remove_const_t<X>;
  return std::allocate_shared<Object>(PoolAllocator<Object>(), std::forward<Arguments>(arguments)...);
}

}  // namespace detail
}  // namespace tapegrad
