/// An operation's arguments besides its tensors, for observers of a tape.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../array/array.hpp"

namespace tapegrad {

/// Collects an operation's arguments besides its tensors. Passed to the `describe` argument of record():
/// `[&](auto& arguments) { arguments.add("axis", axis).add("eps", eps); }`.
template <class T> class Arguments {
 public:
  /// A named argument.
  struct Argument {
    std::string name;  ///< PyTorch's name, `axis` where PyTorch says dim
    std::variant<bool, std::int64_t, double, std::string, IntList, Value<std::int64_t>, Value<bool>, Value<float>,
                 Value<double>>
        value;                 ///< a copy, independent of the operation's call
    std::string text() const;  ///< on one line; the shape of an array
  };

  /// A value computed inside the operation and not stored, such as attention's weights. Recomputed on request.
  struct Intermediate {
    std::string name;                                   ///< "weights"
    Shape shape;                                        ///< its extents
    std::function<Array<T>()> value;                    ///< computes it
    std::function<Array<T>(const Array<T>&)> gradient;  ///< its gradient from the output's; empty if there is none
  };

  /// Adds a number, text, list of integers or array. Arrays are copied, Values shared. Empty optionals and null Values
  /// add nothing.
  template <class X> Arguments& add(std::string name, const X& x) {
    if constexpr (std::same_as<X, bool>)
      return append<bool>(std::move(name), x);
    else if constexpr (std::integral<X>)
      return append<std::int64_t>(std::move(name), static_cast<std::int64_t>(x));
    else if constexpr (std::floating_point<X>)
      return append<double>(std::move(name), static_cast<double>(x));
    else if constexpr (std::convertible_to<const X&, std::string_view>)
      return append<std::string>(std::move(name), std::string_view(x));
    else
      return append<IntList>(std::move(name), integers(x));
  }
  template <class X> Arguments& add(std::string name, const std::optional<X>& x) {  ///< if it has a value
    return x ? add(std::move(name), *x) : *this;
  }
  template <class X> Arguments& add(std::string name, const Value<X>& x) {  ///< shares the array
    return x ? append<Value<X>>(std::move(name), x) : *this;
  }
  template <class X> Arguments& add(std::string name, const Array<X>& x) {  ///< copies the array
    return append<Value<X>>(std::move(name), make_value<X>(x));
  }

  /// Adds a value that is recomputed on request. The functions outlive the call: they capture values, not references.
  Arguments& add_intermediate(std::string name, const Shape& shape, std::function<Array<T>()> value,
                              std::function<Array<T>(const Array<T>&)> gradient = nullptr) {
    intermediates_.push_back({std::move(name), shape, std::move(value), std::move(gradient)});
    return *this;
  }

  const std::vector<Argument>& arguments() const { return arguments_; }              ///< in the order added
  const std::vector<Intermediate>& intermediates() const { return intermediates_; }  ///< in the order added

 private:
  template <class V, class X> Arguments& append(std::string name, X&& x) {
    arguments_.push_back({std::move(name), decltype(Argument::value)(std::in_place_type<V>, std::forward<X>(x))});
    return *this;
  }

  template <class X> static const X& integers(const X& list) {
    static_assert(std::integral<std::remove_cvref_t<decltype(*list.begin())>>, "tapegrad: expected integers");
    return list;
  }

  std::vector<Argument> arguments_;
  std::vector<Intermediate> intermediates_;
};

/// The arguments on one line: `axis=-1 eps=1e-05 mask=(2, 4)`. Arrays print their shapes.
template <class T> std::string to_string(const Arguments<T>& arguments);

namespace detail {

/// A reference to a describe function.
template <class T> struct Describe {
  const void* function;
  void (*call)(const void* function, Arguments<T>& arguments);
  void operator()(Arguments<T>& arguments) const { call(function, arguments); }
};

/// The `describe` of an operation whose only arguments are tensors.
struct NoArguments {
  template <class T> void operator()(Arguments<T>&) const {}
};

}  // namespace detail
}  // namespace tapegrad
