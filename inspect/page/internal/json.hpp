/// JSON as text. For the library's own sources.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

namespace tapegrad::detail {

/// Replaces characters by texts.
std::string replaced(std::string_view text, std::initializer_list<std::pair<char, const char*>> replacements);

class Json;

/// The members of an object, written in sorted order.
using JsonObject = std::map<std::string_view, Json>;

/// A JSON value, stored as its text. (Destroying nlohmann's lists and objects allocates memory and terminates the
/// program without any.) Strings escape <, > and &, which could end the script element in HTML.
class Json {
 public:
  Json() : text_("null") {}
  Json(std::nullptr_t) : Json() {}
  Json(bool value) : text_(value ? "true" : "false") {}
  template <std::integral Number> Json(Number number) : text_(std::to_string(number)) {}
  Json(double number);              ///< null if it is not finite
  Json(const std::string& string);  ///< invalid UTF-8 becomes U+FFFD
  Json(const char* string) : Json(std::string(string)) {}
  Json(const JsonObject& members);

  /// A list of values convertible to Json.
  template <std::ranges::input_range Items> Json(const Items& items) : text_("[") {
    for (const auto& item : items) add_item(item);
    text_ += ']';
  }

  /// A string without characters to escape, such as base64.
  static Json plain_string(std::string_view letters);

  bool is_null() const { return text_ == "null"; }
  const std::string& text() const { return text_; }

 private:
  void add_item(const Json& item) { (text_ += text_.size() > 1 ? "," : "") += item.text_; }

  std::string text_;
};

}  // namespace tapegrad::detail
