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

/// A dense row-major array of any number of axes. Converts from and to any xtensor expression.
template <class T>
using Array = xt::xarray_container<xt::uvector<T, PoolAllocator<T>>, xt::layout_type::row_major, Shape>;

using IntArray = Array<std::int64_t>;  ///< indices: token ids, labels, lengths
using BoolArray = Array<bool>;         ///< masks

namespace detail {

/// While a recording wants to know what a rule saves: the bytes of the Values moved into it so far.
inline thread_local std::size_t* saved_bytes = nullptr;

}  // namespace detail

/// An array that tensors, recordings and parameters share and nobody changes: a shared pointer, which tells a
/// recording that asks how much a rule saves with it.
template <class T> class Value : public std::shared_ptr<const Array<T>> {
  using Pointer = std::shared_ptr<const Array<T>>;

 public:
  using Pointer::Pointer;
  Value(const Pointer& pointer) : Pointer(pointer) {}
  Value(Pointer&& pointer) noexcept : Pointer(std::move(pointer)) {}
  Value(const Value&) noexcept = default;
  Value(Value&& other) noexcept : Pointer(std::move(static_cast<Pointer&>(other))) {
    if (detail::saved_bytes != nullptr && *this) *detail::saved_bytes += (*this)->size() * sizeof(T);
  }
  Value& operator=(const Value&) noexcept = default;
  Value& operator=(Value&&) noexcept = default;
  ~Value() = default;
};

/// Makes an array to be shared, its bookkeeping from the pool too.
template <class T, class... Arguments> std::shared_ptr<Array<T>> make_value(Arguments&&... arguments) {
  return make_pooled<Array<T>>(std::forward<Arguments>(arguments)...);
}

}  // namespace tapegrad
