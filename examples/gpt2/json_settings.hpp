/// Settings that others have written, as an object of a JSON file.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

/// Asks the settings of a file one by one. What is wrong with one is std::runtime_error, naming the file and it. One
/// that is null is not there.
class JsonSettings {
 public:
  /// The settings are not copied. Throws for what is no object.
  JsonSettings(std::string file, const nlohmann::json& settings);

  /// Whether there is such a setting.
  bool has(const char* name) const { return settings_.contains(name) && !settings_.at(name).is_null(); }

  /// A whole number from 1 on.
  std::size_t size(const char* name) const;
  std::size_t size_or(const char* name, std::size_t otherwise) const { return has(name) ? size(name) : otherwise; }

  /// A number above 0.
  double positive(const char* name) const;
  double positive_or(const char* name, double otherwise) const { return has(name) ? positive(name) : otherwise; }

  bool flag_or(const char* name, bool otherwise) const;
  bool is_flag(const char* name) const { return has(name) && at(name).is_boolean(); }

  /// An id, or a list of ids; none where it is not there.
  std::vector<std::int64_t> ids(const char* name) const;

  /// The meaning of a name; it is `otherwise` where it is not there, or refused where that is null.
  template <class T>
  T choice(const char* name, const char* otherwise, std::initializer_list<std::pair<const char*, T>> choices) const {
    const nlohmann::json value = has(name) || otherwise == nullptr ? at(name) : nlohmann::json(otherwise);
    std::string names;
    for (const auto& [text, meaning] : choices) {
      if (value == text) return meaning;
      names += (names.empty() ? "" : ", ") + std::string(text);
    }
    refuse(name, "one of " + names, value);
  }

  /// Refuses a setting that is there and asks for something else than what is done.
  void require(const char* name, const nlohmann::json& expected) const {
    if (has(name) && at(name) != expected) refuse(name, expected.is_null() ? "none" : expected.dump(), at(name));
  }

  /// An object of settings within these.
  JsonSettings below(const char* name) const;

  /// An object of settings whose names are not known before; an empty one where it is not there.
  const nlohmann::json& members(const char* name) const;

  [[noreturn]] void refuse(const char* name, const std::string& expected, const nlohmann::json& given) const;

 private:
  const nlohmann::json& at(const char* name) const;

  std::string file_;
  const nlohmann::json& settings_;
};
