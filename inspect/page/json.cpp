#include "internal/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace tapegrad::detail {

std::string replaced(std::string_view text, std::initializer_list<std::pair<char, const char*>> replacements) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto found = std::ranges::find(replacements, c, &std::pair<char, const char*>::first);
    found == replacements.end() ? out += c : out += found->second;
  }
  return out;
}

Json::Json(double number) : text_(nlohmann::json(number).dump()) {}

Json::Json(const std::string& string) {
  using nlohmann::json;
  const std::string json_text = json(string).dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  text_ = replaced(json_text, {{'<', "\\u003c"}, {'>', "\\u003e"}, {'&', "\\u0026"}});
}

Json::Json(const JsonObject& members) : text_("{") {
  for (const auto& [key, value] : members)
    ((text_ += text_.size() > 1 ? "," : "") += plain_string(key).text_ + ':') += value.text_;
  text_ += '}';
}

Json Json::plain_string(std::string_view letters) {
  Json json;
  json.text_.assign("\"").append(letters) += '"';
  return json;
}

}  // namespace tapegrad::detail
