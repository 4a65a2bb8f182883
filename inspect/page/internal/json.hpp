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

/// A text with others in the place of some characters.
std::string replaced(std::string_view text, std::initializer_list<std::pair<char, const char*>> replacements);

class Json;

/// The members of an object, written in the order of their keys.
using JsonObject = std::map<std::string_view, Json>;

/// A value of JSON, held as its text. (nlohmann's lists and objects need memory where they are destroyed, and end the
/// program when there is none.) In strings <, > and & are escaped: in HTML they could end the script that the text is
/// in.
class Json {
 public:
  Json() : text_("null") {}
  Json(std::nullptr_t) : Json() {}
  Json(bool value) : text_(value ? "true" : "false") {}
  template <std::integral Number> Json(Number number) : text_(std::to_string(number)) {}
  Json(double number);              ///< null for one that is not finite
  Json(const std::string& string);  ///< what is not UTF-8 in it becomes U+FFFD
  Json(const char* string) : Json(std::string(string)) {}
  Json(const JsonObject& members);

  /// A list of what can be made JSON.
  template <std::ranges::input_range Items> Json(const Items& items) : text_("[") {
    for (const auto& item : items) add_item(item);
    text_ += ']';
  }

  /// A string of letters that need no escapes, as base64 has.
  static Json plain_string(std::string_view letters);

  bool is_null() const { return text_ == "null"; }
  const std::string& text() const { return text_; }

 private:
  void add_item(const Json& item) { (text_ += text_.size() > 1 ? "," : "") += item.text_; }

  std::string text_;
};

}  // namespace tapegrad::detail
