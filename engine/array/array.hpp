/// The array types: xtensor containers over the pool.
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
/// reshape and resize do not check the product of extents; the library's functions do.
template <class T>
using Array = xt::xarray_container<xt::uvector<T, PoolAllocator<T>>, xt::layout_type::row_major, Shape>;

using IntArray = Array<std::int64_t>;  ///< Indices: token ids, labels, lengths.
using BoolArray = Array<bool>;         ///< A mask, as masked_fill and where take it.

/// A shared immutable array.
template <class T> using Value = std::shared_ptr<const Array<T>>;

/// Allocates a shared array in the pool.
template <class T, class... Arguments> std::shared_ptr<Array<T>> make_value(Arguments&&... arguments) {
  return detail::make_pooled<Array<T>>(std::forward<Arguments>(arguments)...);
}

}  // namespace tapegrad
