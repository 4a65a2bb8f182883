/// Models and runs are plain structs that list their fields once. Names, parameters, counts, modes, printing and files
/// are traversals of this list.
///
///     struct Classifier {
///       tg::Embedding<> embedding;
///       std::vector<tg::Linear<>> layers;
///       std::size_t num_heads;
///       TAPEGRAD_FIELDS(embedding, layers)
///       TAPEGRAD_SETTINGS(num_heads)
///     };
///
/// Its parameters are named as in PyTorch: embedding.weight, layers.0.weight, layers.0.bias, ...
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../engine/tape/parameter_handle.hpp"
#include "field_storage.hpp"

/// Lists the fields of a struct in the order of traversal and printing; the struct stays an aggregate. save() stores
/// fields of these types: Parameter; a run's state in numbers, arrays, texts, std::vector or std::array of numbers, and
/// std::optional of these; RandomState and Generator; optimizers; structs with their own list; and std::vector,
/// std::array, std::map by text and std::optional of all these except numbers. A derived struct's list replaces its
/// base's and repeats its fields (`this->weight` in a template). train() and eval() set a `bool training`, listed or
/// not.
#define TAPEGRAD_FIELDS(...)                                                                              \
  static_assert(::tapegrad::detail::are_identifiers(#__VA_ARGS__),                                        \
                "tapegrad: expected plain member names in TAPEGRAD_FIELDS; checkpoints use these names"); \
  static_assert(!::tapegrad::detail::has_duplicates(#__VA_ARGS__),                                        \
                "tapegrad: expected each member once in TAPEGRAD_FIELDS, got one twice");                 \
  static constexpr std::string_view tapegrad_field_names() { return #__VA_ARGS__; }                       \
  auto tapegrad_fields() { return std::tie(__VA_ARGS__); }                                                \
  auto tapegrad_fields() const { return std::tie(__VA_ARGS__); }                                          \
  auto tapegrad_listed() const { return this; }

/// Lists constructor arguments, such as a number of heads: printed, not saved. With or without TAPEGRAD_FIELDS.
#define TAPEGRAD_SETTINGS(...)                                                        \
  static_assert(::tapegrad::detail::are_identifiers(#__VA_ARGS__),                    \
                "tapegrad: expected plain member names in TAPEGRAD_SETTINGS");        \
  static constexpr std::string_view tapegrad_setting_names() { return #__VA_ARGS__; } \
  auto tapegrad_settings() const { return std::tie(__VA_ARGS__); }

namespace tapegrad {

namespace detail {

/// The position of a traversal: a chain of fields on the stack, so a name is only built on request.
struct Path {
  const Path* outer = nullptr;
  std::string_view field;

  /// "layers.0.weight"; empty for the model itself.
  std::string text() const {
    const std::string front = outer ? outer->text() : "";
    return front.empty() ? std::string(field) : front + '.' + std::string(field);
  }
};

/// True if the name matches `pattern`, with * for any text.
bool matches(std::string_view pattern, std::string_view name);

/// Removes the first name from "a, b, c". Strips the prefix of this->a and the suffix of a_.
constexpr std::string_view take_name(std::string_view& list) {
  const std::size_t end = list.find(',');
  std::string_view name = list.substr(0, end);
  list.remove_prefix(end == list.npos ? list.size() : end + 1);
  while (name.starts_with(' ')) name.remove_prefix(1);
  while (name.ends_with(' ')) name.remove_suffix(1);
  if (name.starts_with("this->")) name.remove_prefix(6);
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

/// True if all names in "a, b, c" are valid. A dot would make one ambiguous with another field's path.
constexpr bool are_identifiers(std::string_view list) {
  while (!list.empty())
    for (const char c : take_name(list)) {
      const bool is_ascii = static_cast<unsigned char>(c) < 128;
      if (is_ascii && c != '_' && !('0' <= c && c <= '9') && !('a' <= (c | 32) && (c | 32) <= 'z')) return false;
    }
  return true;
}

/// True if "a, b, c" contains a duplicate.
constexpr bool has_duplicates(std::string_view list) {
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

template <class F> inline constexpr bool is_optional = false;
template <class F> inline constexpr bool is_optional<std::optional<F>> = true;

template <class F> inline constexpr bool is_sequence = false;
template <class F> inline constexpr bool is_sequence<std::vector<F>> = std::is_class_v<F>;
template <class F, std::size_t N> inline constexpr bool is_sequence<std::array<F, N>> = std::is_class_v<F>;

template <class F> inline constexpr bool is_map = false;
template <class F> inline constexpr bool is_map<std::map<std::string, F>> = true;

template <class F>
concept HasFields = requires(F& field) {
  field.tapegrad_fields();
};
template <class F>
concept HasSettings = requires(F& field) {
  field.tapegrad_settings();
};
template <class F>
concept HasList = HasFields<F> || HasSettings<F>;

/// A model to traverse: a struct with a list, a parameter, or a container of these.
template <class F> inline constexpr bool is_model = HasList<F> || is_parameter<F>;
template <class F> inline constexpr bool is_model<const F> = is_model<F>;
template <class F> inline constexpr bool is_model<std::optional<F>> = is_model<F>;
template <class F> inline constexpr bool is_model<std::vector<F>> = is_model<F>;
template <class F, std::size_t N> inline constexpr bool is_model<std::array<F, N>> = is_model<F>;
template <class F> inline constexpr bool is_model<std::map<std::string, F>> = is_model<F>;

/// A model, or a type easily mistaken for one: static_asserts then name the missing part. Excludes xtensor's
/// expressions: xtensor calls its own eval() unqualified, and for Arrays, argument-dependent lookup finds this
/// namespace.
template <class M>
concept ModelArgument = !xt::is_xexpression<std::remove_const_t<M>>::value;

/// A setting during a traversal: printing shows it, others skip it.
template <class S> struct Setting { const S& value; };
template <class F> inline constexpr bool is_setting = false;
template <class S> inline constexpr bool is_setting<Setting<S>> = true;

template <class Field, class Visit> void walk(const Path& path, Field& field, Visit& visit);

template <class Field, class Visit> void walk_list(const Path& path, Field& field, Visit& visit) {
  using F = std::remove_const_t<Field>;
  static_assert(sizeof(F) == sizeof(*field.tapegrad_listed()),
                "tapegrad: a derived struct has members missing from its base's TAPEGRAD_FIELDS. Give it its own "
                "TAPEGRAD_FIELDS(...) with all members, including the base's.");
  std::apply(
      [&](auto&... fields) {
        static_assert(
            std::is_const_v<Field> || !(std::is_const_v<std::remove_reference_t<decltype(fields)>> || ...),
            "tapegrad: a field listed in TAPEGRAD_FIELDS is const, so it cannot be trained or loaded. Declare it "
            "without const, or list it in TAPEGRAD_SETTINGS.");
        static constexpr auto names = split_names<sizeof...(fields)>(F::tapegrad_field_names());
        [[maybe_unused]] auto name = names.begin();
        (walk(Path{&path, *name++}, fields, visit), ...);
      },
      field.tapegrad_fields());
}

template <class F, class Visit> void walk_settings(const Path& path, const F& field, Visit& visit) {
  std::apply(
      [&]<class... S>(const S&... values) {
        static_assert(
            !(is_model<S> || ...),
            "tapegrad: a layer is listed in TAPEGRAD_SETTINGS, so it would not be trained or saved. List it in "
            "TAPEGRAD_FIELDS.");
        static constexpr auto names = split_names<sizeof...(S)>(F::tapegrad_setting_names());
        [[maybe_unused]] auto name = names.begin();
        const auto show = [&](const auto& setting) { visit(Path{&path, *name++}, setting); };
        (show(Setting<S>{values}), ...);
      },
      field.tapegrad_settings());
}

/// Calls visit(path, x) for the field and everything below it: structs with a list, defined parameters, other stored
/// fields, and Settings; a struct before its fields. The fields of a struct with a type tapegrad_inline are visited as
/// its owner's.
template <class Field, class Visit> void walk(const Path& path, Field& field, Visit& visit) {
  using F = std::remove_const_t<Field>;
  if constexpr (HasList<F>) {
    constexpr bool is_inline = requires { typename F::tapegrad_inline; };
    if constexpr (!is_inline) visit(path, field);
    const Path& owner = is_inline && path.outer ? *path.outer : path;
    if constexpr (HasFields<F>) walk_list(owner, field, visit);
    if constexpr (HasSettings<F>) walk_settings(owner, std::as_const(field), visit);
  } else if constexpr (is_parameter<F>) {
    if (field.defined()) visit(path, field);
  } else if constexpr (is_stored<F>) {
    visit(path, field);
  } else if constexpr (is_optional<F>) {
    if (field) walk(path, *field, visit);
  } else if constexpr (is_sequence<F>) {
    for (std::size_t i = 0; i < field.size(); ++i) {
      const std::string number = std::to_string(i);
      walk(Path{&path, number}, field[i], visit);
    }
  } else if constexpr (is_map<F>) {
    for (auto& [key, item] : field) walk(Path{&path, key}, item, visit);
  } else {
    static_assert(
        is_stored<F>,
        "tapegrad: a field listed in TAPEGRAD_FIELDS has a type that can be neither trained nor saved. Give a "
        "struct its own public TAPEGRAD_FIELDS(...); hold layers by value or in std::vector, std::array, "
        "std::map or std::optional; list constructor arguments in TAPEGRAD_SETTINGS or leave them out.");
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

template <class M> void set_training(M& model, bool training) {
  walk(model, [&](const Path&, auto& field) {
    if constexpr (requires { requires std::same_as<decltype((field.training)), bool&>; }) field.training = training;
  });
}

/// False for a Weight in bfloat16, although it is defined.
template <class T> bool has_value(const Parameter<T>& parameter) { return parameter.defined(); }

struct Scalars {
  bool of_float = false, of_double = false;
  constexpr Scalars operator|(Scalars other) const {
    return {of_float || other.of_float, of_double || other.of_double};
  }
};

/// The scalar types of a model's parameters.
template <class F> constexpr Scalars scalars_of() {
  if constexpr (HasFields<F>)
    return []<class... Fs>(std::type_identity<std::tuple<Fs&...>>) {
      return (Scalars{} | ... | scalars_of<std::remove_const_t<Fs>>());
    }(std::type_identity<decltype(std::declval<F&>().tapegrad_fields())>());
  else if constexpr (is_parameter<F>)
    return {std::is_same_v<typename F::value_type, float>, std::is_same_v<typename F::value_type, double>};
  else if constexpr (is_map<F>)
    return scalars_of<typename F::mapped_type>();
  else if constexpr (is_optional<F> || is_sequence<F>)
    return scalars_of<typename F::value_type>();
  else
    return {};
}

template <ModelArgument M> constexpr auto scalar() {
  constexpr Scalars scalars = scalars_of<std::remove_const_t<M>>();
  static_assert(
      scalars.of_float || scalars.of_double,
      "tapegrad: expected a model with parameters, a struct that holds its layers by value and lists them in a "
      "public TAPEGRAD_FIELDS(first, second)");
  static_assert(!(scalars.of_float && scalars.of_double),
                "tapegrad: expected a model of one scalar type, got one with parameters of float and of double");
  return std::conditional_t<scalars.of_float, float, double>();
}

/// The type of a model's numbers, float or double.
template <class M> using ScalarOf = decltype(scalar<M>());

}  // namespace detail

/// Handles to a model's parameters with PyTorch's state_dict names, such as `layers.0.weight`; also sets these names
/// for reports and errors. Omits undefined parameters, such as the bias of a Linear without one, and weights held in
/// bfloat16.
template <detail::ModelArgument M> NamedParameters<detail::ScalarOf<M>> named_parameters(M& model) {
  NamedParameters<detail::ScalarOf<M>> named;
  detail::for_each_parameter(model, [&](const auto& path, auto& parameter) {
    if (!detail::has_value(parameter)) return;
    const std::string name = path.text();
    parameter.set_name(name);
    named.emplace_back(name, ParameterHandle(parameter));
  });
  return named;
}

/// The same for a const model, without setting names.
template <detail::ModelArgument M> NamedConstParameters<detail::ScalarOf<M>> named_parameters(const M& model) {
  NamedConstParameters<detail::ScalarOf<M>> named;
  detail::for_each_parameter(model, [&](const auto& path, auto& parameter) {
    if (detail::has_value(parameter)) named.emplace_back(path.text(), ParameterHandle(parameter));
  });
  return named;
}

/// Handles to the parameters with choose(name, parameter) true.
template <detail::ModelArgument M, std::predicate<std::string_view, const Parameter<detail::ScalarOf<M>>&> Choose>
Parameters<detail::ScalarOf<M>> parameters(M& model, Choose choose) {
  static_assert(!std::is_const_v<M>,
                "tapegrad: the model is const, so its parameters cannot be trained; read them with named_parameters()");
  Parameters<detail::ScalarOf<M>> chosen;
  for (const auto& [name, parameter] : named_parameters(model))
    if (choose(name, std::as_const(*parameter))) chosen.push_back(parameter);
  return chosen;
}

/// Handles to all parameters.
template <detail::ModelArgument M> Parameters<detail::ScalarOf<M>> parameters(M& model) {
  return parameters(model, [](std::string_view, const auto&) { return true; });
}

/// The total number of elements in a model's parameters.
template <detail::ModelArgument M> std::size_t count_parameters(const M& model) {
  std::size_t count = 0;
  detail::for_each_parameter(model, [&](const auto&, const auto& parameter) { count += parameter.size(); });
  return count;
}

/// Clears the gradients of a model's parameters.
template <detail::ModelArgument M> void zero_grad(M& model) {
  detail::for_each_parameter(model, [](const auto&, auto& parameter) { parameter.zero_grad(); });
}

/// Switches a model to training mode, the default: dropout is active.
template <detail::ModelArgument M> void train(M& model) { detail::set_training(model, true); }

/// Switches a model to evaluation mode: dropout is the identity.
template <detail::ModelArgument M> void eval(M& model) { detail::set_training(model, false); }

}  // namespace tapegrad
