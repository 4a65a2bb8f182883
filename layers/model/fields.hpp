/// A model is its fields: a plain struct lists them once, and names, parameters, counts, modes, printing and
/// checkpoints are walks over that list.
///
///     struct Classifier {
///       tg::Embedding<> embedding;
///       std::vector<tg::Linear<>> layers;
///       TAPEGRAD_FIELDS(embedding, layers)
///     };
///
/// Its parameters are named as in PyTorch: embedding.weight, layers.0.weight, layers.0.bias, ...
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../engine/tape/parameter.hpp"

/// Lists the fields of a struct, in the order in which they are to be walked and printed; the struct stays an
/// aggregate. Walks enter Parameters, structs with a list of their own, and these in std::vector, std::array and
/// std::optional. Numbers may be listed, and are printed; a `bool training` in the struct is switched by train() and
/// eval(). A derived struct's list takes the place of its base's, whose fields it lists along (`this->weight` in a
/// template).
#define TAPEGRAD_FIELDS(...)                                                                                          \
  static_assert(::tapegrad::detail::are_identifiers(#__VA_ARGS__),                                                    \
                "tapegrad: expected the names of members alone in TAPEGRAD_FIELDS: they name what a checkpoint has"); \
  static_assert(!::tapegrad::detail::has_twins(#__VA_ARGS__),                                                         \
                "tapegrad: a member is listed twice in TAPEGRAD_FIELDS");                                             \
  static constexpr std::string_view tapegrad_field_names() { return #__VA_ARGS__; }                                   \
  auto tapegrad_fields() { return std::tie(__VA_ARGS__); }                                                            \
  auto tapegrad_fields() const { return std::tie(__VA_ARGS__); }                                                      \
  auto tapegrad_listed() const { return this; }

namespace tapegrad {

namespace detail {

/// Where a walk is: the fields that it went through, as a chain on the stack, so that a name costs only when asked for.
struct Path {
  const Path* outer = nullptr;
  std::string_view field;

  /// "layers.0.weight"; empty for the model itself.
  std::string text() const {
    const std::string front = outer ? outer->text() : "";
    return front.empty() ? std::string(field) : front + '.' + std::string(field);
  }
};

/// Takes the first name off "a, b, c". A template names the fields of its base as this->a.
constexpr std::string_view take_name(std::string_view& list) {
  const std::size_t end = list.find(',');
  std::string_view name = list.substr(0, end);
  list.remove_prefix(end == list.npos ? list.size() : end + 1);
  while (name.starts_with(' ')) name.remove_prefix(1);
  while (name.ends_with(' ')) name.remove_suffix(1);
  if (name.starts_with("this->")) name.remove_prefix(6);
  return name;
}

/// Whether all names in "a, b, c" are. One with a dot in it could be the path of another field.
constexpr bool are_identifiers(std::string_view list) {
  while (!list.empty())
    for (const char c : take_name(list)) {
      const bool is_ascii = static_cast<unsigned char>(c) < 128;
      if (is_ascii && c != '_' && !('0' <= c && c <= '9') && !('a' <= (c | 32) && (c | 32) <= 'z')) return false;
    }
  return true;
}

/// Whether a name in "a, b, c" is there twice.
constexpr bool has_twins(std::string_view list) {
  while (!list.empty()) {
    const std::string_view name = take_name(list);
    for (std::string_view rest = list; !rest.empty();)
      if (take_name(rest) == name) return true;
  }
  return false;
}

/// The names in "a, b, c".
template <std::size_t N> constexpr std::array<std::string_view, N> split_names(std::string_view list) {
  std::array<std::string_view, N> names;
  for (std::string_view& name : names) name = take_name(list);
  return names;
}

template <class F> inline constexpr bool is_parameter = false;
template <class T> inline constexpr bool is_parameter<Parameter<T>> = true;

template <class F> inline constexpr bool is_optional = false;
template <class F> inline constexpr bool is_optional<std::optional<F>> = true;

template <class F> inline constexpr bool is_sequence = false;
template <class F> inline constexpr bool is_sequence<std::vector<F>> = std::is_class_v<F>;
template <class F, std::size_t N> inline constexpr bool is_sequence<std::array<F, N>> = std::is_class_v<F>;

template <class F>
concept HasFields = requires(F& field) {
  field.tapegrad_fields();
};

/// What can be walked as a model: a struct with a list, a parameter, or some of them.
template <class F> inline constexpr bool is_model = HasFields<F> || is_parameter<F>;
template <class F> inline constexpr bool is_model<const F> = is_model<F>;
template <class F> inline constexpr bool is_model<std::optional<F>> = is_model<F>;
template <class F> inline constexpr bool is_model<std::vector<F>> = is_model<F>;
template <class F, std::size_t N> inline constexpr bool is_model<std::array<F, N>> = is_model<F>;

/// What a list may hold although no walk enters it, since no parameter can be in it: texts, arrays, options. Others may
/// be models behind pointers, in other containers or without a list, which would be lost without a word.
template <class F> inline constexpr bool is_plain = std::is_trivially_copyable_v<F>;
template <class F> inline constexpr bool is_plain<const F> = is_plain<F>;
template <class F> inline constexpr bool is_plain<F*> = std::is_arithmetic_v<F>;
template <class T> inline constexpr bool is_plain<Tensor<T>> = true;
template <class F, class G> inline constexpr bool is_plain<std::pair<F, G>> = is_plain<F>&& is_plain<G>;
template <class Range>
requires requires(Range& range, typename Range::value_type* item) { range.begin() == range.end(), item; }
inline constexpr bool is_plain<Range> = is_plain<typename Range::value_type>;

/// Calls visit(path, x) for the field itself and all below it that are a struct with a list, a parameter that is
/// defined or a number; a struct before its fields.
template <class Field, class Visit> void walk(const Path& path, Field& field, Visit& visit) {
  using F = std::remove_const_t<Field>;
  if constexpr (HasFields<F>) {
    static_assert(sizeof(F) == sizeof(*field.tapegrad_listed()),
                  "tapegrad: a struct has members of its own beside those in its base's TAPEGRAD_FIELDS. Give it a "
                  "TAPEGRAD_FIELDS(...) with all of them, the base's too.");
    visit(path, field);
    std::apply(
        [&](auto&... fields) {
          static_assert(std::is_const_v<Field> || !((std::is_const_v<std::remove_reference_t<decltype(fields)>> &&
                                                     is_model<std::remove_reference_t<decltype(fields)>>) ||
                                                    ...),
                        "tapegrad: a field listed in TAPEGRAD_FIELDS is const, so that it could not be trained or "
                        "loaded. Declare it without const.");
          static constexpr auto names = split_names<sizeof...(fields)>(F::tapegrad_field_names());
          [[maybe_unused]] auto name = names.begin();
          (walk(Path{&path, *name++}, fields, visit), ...);
        },
        field.tapegrad_fields());
  } else if constexpr (is_parameter<F>) {
    if (field.defined()) visit(path, field);
  } else if constexpr (is_optional<F>) {
    if (field) walk(path, *field, visit);
  } else if constexpr (is_sequence<F>) {
    for (std::size_t i = 0; i < field.size(); ++i) {
      const std::string number = std::to_string(i);
      walk(Path{&path, number}, field[i], visit);
    }
  } else if constexpr (std::is_arithmetic_v<F>) {
    visit(path, field);
  } else {
    static_assert(is_plain<F>,
                  "tapegrad: a field listed in TAPEGRAD_FIELDS may hold parameters where no walk finds them. Give its "
                  "struct a public TAPEGRAD_FIELDS(...) of its own, hold layers by value or in std::vector, std::array "
                  "or std::optional; a field without parameters can be left out of the list.");
  }
}

template <class M, class Visit> void walk(M& model, Visit visit) {
  static_assert(
      is_model<M>,
      "tapegrad: expected a model, a struct that lists its layers in a public TAPEGRAD_FIELDS(first, second)");
  walk(Path{}, model, visit);
}

template <class M, class Visit> void for_each_parameter(M& model, Visit visit) {
  walk(model, [&](const Path& path, auto& field) {
    if constexpr (is_parameter<std::remove_cvref_t<decltype(field)>>) visit(path, field);
  });
}

struct Scalars {
  bool of_float = false, of_double = false;
  constexpr Scalars operator|(Scalars other) const {
    return {of_float || other.of_float, of_double || other.of_double};
  }
};

/// Of which scalars the parameters in a model are.
template <class F> constexpr Scalars scalars_of() {
  if constexpr (HasFields<F>)
    return []<class... Fs>(std::type_identity<std::tuple<Fs&...>>) {
      return (Scalars{} | ... | scalars_of<std::remove_const_t<Fs>>());
    }(std::type_identity<decltype(std::declval<F&>().tapegrad_fields())>());
  else if constexpr (is_parameter<F>)
    return {std::is_same_v<typename F::value_type, float>, std::is_same_v<typename F::value_type, double>};
  else if constexpr (is_optional<F> || is_sequence<F>)
    return scalars_of<typename F::value_type>();
  else
    return {};
}

template <class M> constexpr auto scalar() {
  constexpr Scalars scalars = scalars_of<std::remove_const_t<M>>();
  static_assert(
      scalars.of_float || scalars.of_double,
      "tapegrad: expected a model with parameters, a struct that holds its layers by value and lists them in a "
      "public TAPEGRAD_FIELDS(first, second)");
  static_assert(!(scalars.of_float && scalars.of_double),
                "tapegrad: expected a model of one scalar type, given one with parameters of float and of double");
  return std::conditional_t<scalars.of_float, float, double>();
}

/// The type of a model's numbers, float or double.
template <class M> using ScalarOf = decltype(scalar<M>());

}  // namespace detail

/// Handles on a model's parameters with their names, as in PyTorch's state_dict: `layers.0.weight`, which they also
/// take on for reports and errors. Parameters that are undefined, as a Linear's bias may be, are left out, here and
/// below.
template <class M> NamedParameters<detail::ScalarOf<M>> named_parameters(M& model) {
  NamedParameters<detail::ScalarOf<M>> named;
  detail::for_each_parameter(model, [&](const auto& path, auto& parameter) {
    parameter.set_name(path.text());
    named.emplace_back(path.text(), ParameterHandle(parameter));
  });
  return named;
}

/// The same of a model that is const, whose parameters keep the names they have.
template <class M> NamedConstParameters<detail::ScalarOf<M>> named_parameters(const M& model) {
  NamedConstParameters<detail::ScalarOf<M>> named;
  detail::for_each_parameter(
      model, [&](const auto& path, auto& parameter) { named.emplace_back(path.text(), ParameterHandle(parameter)); });
  return named;
}

/// Handles on a model's parameters, for an optimizer.
template <class M> Parameters<detail::ScalarOf<M>> parameters(M& model) {
  Parameters<detail::ScalarOf<M>> all;
  for (const auto& [name, parameter] : named_parameters(model)) all.push_back(parameter);
  return all;
}

/// How many numbers a model's parameters have in all.
template <class M> std::size_t count_parameters(const M& model) {
  std::size_t count = 0;
  detail::for_each_parameter(model, [&](const auto&, const auto& parameter) { count += parameter.size(); });
  return count;
}

/// Forgets the gradients of a model's parameters.
template <class M> void zero_grad(M& model) {
  detail::for_each_parameter(model, [](const auto&, auto& parameter) { parameter.zero_grad(); });
}

namespace detail {

template <class M> void set_training(M& model, bool training) {
  walk(model, [&](const Path&, auto& field) {
    if constexpr (requires { field.training = training; }) field.training = training;
  });
}

}  // namespace detail

/// Switches a model to training: dropout drops. Models begin so.
template <class M> void train(M& model) { detail::set_training(model, true); }

/// Switches a model to evaluation: dropout does nothing.
template <class M> void eval(M& model) { detail::set_training(model, false); }

}  // namespace tapegrad
