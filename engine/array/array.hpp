/// The array types: xtensor containers with one allocator, whatever flags a user compiles with.
#pragma once

#if __has_include(<xtensor/containers/xarray.hpp>)  // xtensor 0.26 sorted its headers into folders
#include <xtensor/containers/xarray.hpp>
#else
#include <xtensor/xarray.hpp>
#endif

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "pool.hpp"

namespace tapegrad {

/// Extents of an array, outermost axis first.
using Shape = xt::dynamic_shape<std::size_t>;

/// A dense row-major array of any number of axes. Converts from and to any xtensor expression. Its own constructors,
/// reshape and resize are xtensor's, which multiply extents without a check: a product beyond std::size_t wraps around
/// before any allocator sees it. The operations and what draws random numbers refuse such extents.
template <class T>
using Array = xt::xarray_container<xt::uvector<T, PoolAllocator<T>>, xt::layout_type::row_major, Shape>;

using IntArray = Array<std::int64_t>;  ///< Indices: token ids, labels, lengths.
using BoolArray = Array<bool>;         ///< A mask, as masked_fill and where take it.

namespace detail {

/// While one lives on a thread: the bytes of the arrays behind the Values that were copied there since.
struct SharedBytes {
  inline static thread_local SharedBytes* counting = nullptr;

  SharedBytes() { counting = this; }
  ~SharedBytes() { counting = nullptr; }  // also when a copy fails
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;

  std::size_t bytes = 0;
};

}  // namespace detail

/// An array that tensors, recordings and parameters share and nobody changes: a shared pointer whose copies can be
/// counted, so that a tape which profiles can tell what a rule saves.
template <class T> class Value : public std::shared_ptr<const Array<T>> {
  using Pointer = std::shared_ptr<const Array<T>>;

 public:
  using Pointer::Pointer;
  Value(const Pointer& pointer) : Pointer(pointer) {}                 ///< shares the array
  Value(Pointer&& pointer) noexcept : Pointer(std::move(pointer)) {}  ///< takes the share over
  /// Shares the array, and is counted where a tape profiles.
  Value(const Value& other) noexcept : Pointer(other) {
    if (detail::SharedBytes::counting != nullptr && *this)
      detail::SharedBytes::counting->bytes += (*this)->size() * sizeof(T);
  }
  Value(Value&&) noexcept = default;
  Value& operator=(const Value&) noexcept = default;
  Value& operator=(Value&&) noexcept = default;
  ~Value() = default;
};

/// Makes an array to be shared, its bookkeeping from the pool too.
template <class T, class... Arguments> std::shared_ptr<Array<T>> make_value(Arguments&&... arguments) {
  return detail::make_pooled<Array<T>>(std::forward<Arguments>(arguments)...);
}

}  // namespace tapegrad
