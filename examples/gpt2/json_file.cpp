#include "json_file.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../common/printable.hpp"
#include "../common/progress.hpp"
#include "files.hpp"

using nlohmann::json;

namespace {

// Parsed values take about 25 times the memory. The largest vocabularies have about 30 MB.
constexpr std::uintmax_t kLargest = std::uintmax_t{128} << 20;

constexpr std::size_t kMaxDepth = 100;  // the parser uses no stack, but later recursion does

/// Builds the value from the parser's events, since json::parse silently accepts duplicate names.
class Reader {
 public:
  json value;
  std::string refusal;  // error message, or empty

  bool null() { return add(nullptr); }
  bool boolean(bool given) { return add(given); }
  bool number_integer(std::int64_t given) { return add(given); }
  bool number_unsigned(std::uint64_t given) { return add(given); }
  bool number_float(double given, const std::string&) { return add(given); }
  bool string(std::string& given) { return add(std::move(given)); }
  bool binary(json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const auto [member, is_new] = open_.back()->emplace(name, nullptr);
    member_ = &*member;
    return is_new || refuse("distinct names in an object, got " + examples::in_quotes(name) + " twice");
  }

  bool parse_error(std::size_t byte, const std::string&, const json::exception&) {
    return refuse("JSON, got a syntax error at byte " + examples::with_commas(byte));
  }

 private:
  bool refuse(const std::string& why) {
    refusal = "expected " + why;
    return false;
  }

  json* place(json given) {
    if (open_.empty()) return &(value = std::move(given));
    if (!open_.back()->is_array()) return &(*member_ = std::move(given));
    open_.back()->push_back(std::move(given));
    return &open_.back()->back();
  }

  bool add(json given) { return place(std::move(given)) != nullptr; }

  bool open(json empty) {
    if (open_.size() == kMaxDepth)
      return refuse(std::string("JSON with at most ") + std::to_string(kMaxDepth) + " nested levels, got more");
    open_.push_back(place(std::move(empty)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<json*> open_;  // open lists and objects, outermost first
  json* member_ = nullptr;   // receives the next value
};

}  // namespace

json read_json(const std::filesystem::path& file) {
  const std::string bytes = read_file(file, kLargest);
  Reader reader;
  if (!json::sax_parse(bytes, &reader)) throw std::runtime_error(file.string() + ": " + reader.refusal);
  return std::move(reader.value);
}

std::string shown(const json& value) {
  return examples::printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 80);
}
