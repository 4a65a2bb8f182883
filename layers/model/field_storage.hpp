/// How fields other than models are stored in files: as an array of numbers or as text.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../engine/array/array.hpp"
#include "../../engine/array/random.hpp"
#include "../../engine/tape/parameter.hpp"

namespace tapegrad::detail {

template <class T, class... Types>
concept OneOf = (std::same_as<T, Types> || ...);

/// The number types of safetensors files.
template <class T>
concept Number = OneOf<T, bool, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long,
                       long long, unsigned long long, float, double>;

/// Storing a field of type F; undefined for types that files do not store.
///
///     using Number          the element type
///     get(field)            the array to write
///     make(array)           converts a loaded array for set()
///     set(field, made)      assigns it; allocates nothing and cannot fail
///     fits(field, shape)    true if the field accepts an array of this shape
///     wanted(field)         the accepted shape in words: "of shape (2, 3)"
///     has(field)            true if the field has an array now
///     reset(field)          for optional fields, called if the file has none
template <class F> struct FieldStorage;

/// Required fields of a known shape: the derived struct's shape(field).
template <class Derived> struct StorageOfShape {
  static bool has(const auto&) { return true; }
  static bool fits(const auto& field, const Shape& shape) { return shape == Derived::shape(field); }
  static std::string wanted(const auto& field) { return "of shape " + to_string(Derived::shape(field)); }
};

/// Fields replaced by the converted array.
template <class F> struct StorageByValue {
  static void set(F& field, F&& made) { field = std::move(made); }
};

template <Number F> struct FieldStorage<F> : StorageOfShape<FieldStorage<F>>, StorageByValue<F> {
  using Number = F;
  static Array<F> get(F field) { return Array<F>(Shape{}, field); }
  static F make(const Array<F>& array) { return *array.data(); }
  static Shape shape(F) { return {}; }
};

template <Number F, std::size_t N>
struct FieldStorage<std::array<F, N>> : StorageOfShape<FieldStorage<std::array<F, N>>>,
                                        StorageByValue<std::array<F, N>> {
  using Number = F;
  static Array<F> get(const std::array<F, N>& field) { return array<F>(field); }
  static std::array<F, N> make(const Array<F>& array) {
    std::array<F, N> made;
    std::copy_n(array.data(), N, made.begin());
    return made;
  }
  static Shape shape(const std::array<F, N>&) { return {N}; }
};

template <Number F> struct FieldStorage<std::vector<F>> : StorageByValue<std::vector<F>> {
  using Number = F;
  static Array<F> get(const std::vector<F>& field) { return array<F>(field); }
  static std::vector<F> make(const Array<F>& array) {
    return std::vector<F>(array.data(), array.data() + array.size());  // in braces, pointers are two bools
  }
  static bool has(const std::vector<F>&) { return true; }
  static bool fits(const std::vector<F>&, const Shape& shape) { return shape.size() == 1; }
  static std::string wanted(const std::vector<F>&) { return "of one axis"; }
};

template <class T> struct FieldStorage<Array<T>> : StorageOfShape<FieldStorage<Array<T>>>, StorageByValue<Array<T>> {
  using Number = T;
  static const Array<T>& get(const Array<T>& field) { return field; }
  static Array<T> make(Array<T>&& array) { return std::move(array); }
  static const Shape& shape(const Array<T>& field) { return field.shape(); }
};

template <class T> struct FieldStorage<Tensor<T>> : StorageOfShape<FieldStorage<Tensor<T>>>, StorageByValue<Tensor<T>> {
  using Number = T;
  static const Array<T>& get(const Tensor<T>& field) { return field.value(); }
  static Tensor<T> make(Array<T>&& array) { return Tensor<T>(std::move(array)); }
  static const Shape& shape(const Tensor<T>& field) { return field.shape(); }
};

/// A generator as its state.
template <> struct FieldStorage<Generator> : StorageOfShape<FieldStorage<Generator>>, StorageByValue<Generator> {
  using Number = std::uint64_t;
  static Array<std::uint64_t> get(const Generator& field) { return FieldStorage<Generator::State>::get(field.state()); }
  static Generator make(const Array<std::uint64_t>& array) {
    return Generator::from_state(FieldStorage<Generator::State>::make(array));
  }
  static Shape shape(const Generator&) { return {2}; }
};

template <> struct FieldStorage<RandomState> : StorageOfShape<FieldStorage<RandomState>> {
  using Number = std::uint64_t;
  static Array<std::uint64_t> get(RandomState) { return FieldStorage<Generator>::get(default_generator()); }
  static Generator make(const Array<std::uint64_t>& array) { return FieldStorage<Generator>::make(array); }
  static void set(RandomState, Generator&& made) { default_generator() = made; }
  static Shape shape(RandomState) { return {2}; }
};

template <class T> void as_parameter(const Parameter<T>*);
/// True for a Parameter and for types derived from it.
template <class F> inline constexpr bool is_parameter = requires(const F* field) { as_parameter(field); };

template <class F>
requires is_parameter<F>
struct FieldStorage<F> : StorageOfShape<FieldStorage<F>> {
  using T = typename F::value_type;
  using Number = T;
  static const Array<T>& get(const F& field) { return field.value(); }
  static std::shared_ptr<Array<T>> make(Array<T>&& array) { return make_value<T>(std::move(array)); }
  static void set(F& field, std::shared_ptr<Array<T>>&& made) { field.share_value(std::move(made)); }
  static const Shape& shape(const F& field) { return field.shape(); }
};

template <class F>
concept HasStorage = requires {
  typename FieldStorage<F>::Number;
};

/// True if a field is made from an array alone, independent of its old value.
template <class F>
concept MadeOfArray = HasStorage<F> && requires(Array<typename FieldStorage<F>::Number> array) {
  { FieldStorage<F>::make(std::move(array)) } -> std::same_as<F>;
};

/// Present if the file has it, with the shape in the file.
template <MadeOfArray F> struct FieldStorage<std::optional<F>> : StorageByValue<std::optional<F>> {
  using Number = typename FieldStorage<F>::Number;
  static constexpr bool kIsArray = OneOf<F, Array<Number>, Tensor<Number>>;
  static bool has(const std::optional<F>& field) { return field.has_value(); }
  static decltype(auto) get(const std::optional<F>& field) { return FieldStorage<F>::get(*field); }
  static std::optional<F> make(Array<Number>&& array) { return FieldStorage<F>::make(std::move(array)); }
  static void reset(std::optional<F>& field) { field.reset(); }
  static bool fits(const std::optional<F>&, const Shape& shape) {
    return kIsArray || FieldStorage<F>::fits(F(), shape);
  }
  static std::string wanted(const std::optional<F>&) {
    return kIsArray ? "of any shape" : FieldStorage<F>::wanted(F());
  }
};

template <class F> inline constexpr bool is_text = OneOf<F, std::string, std::optional<std::string>>;

/// The field's text; null if it is an empty optional.
inline const std::string* text_of(const std::string& field) { return &field; }
inline const std::string* text_of(const std::optional<std::string>& field) { return field ? &*field : nullptr; }

template <class F> inline constexpr bool is_stored = HasStorage<F> || is_text<F>;

}  // namespace tapegrad::detail
