/// Settings in an untrusted JSON file.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

/// Reads settings one by one. Throws std::runtime_error, naming the file and the setting, for invalid ones. null counts
/// as missing.
class JsonSettings {
 public:
  /// Keeps a reference to the settings. Throws if they are not an object.
  JsonSettings(std::string file, const nlohmann::json& settings);

  /// True if the setting exists and is not null.
  bool has(const char* name) const { return settings_.contains(name) && !settings_.at(name).is_null(); }

  /// A whole number >= 1.
  std::size_t size(const char* name) const;
  std::size_t size_or(const char* name, std::size_t otherwise) const { return has(name) ? size(name) : otherwise; }

  /// A number > 0.
  double positive(const char* name) const;
  double positive_or(const char* name, double otherwise) const { return has(name) ? positive(name) : otherwise; }

  bool flag_or(const char* name, bool otherwise) const;
  bool is_flag(const char* name) const { return has(name) && at(name).is_boolean(); }

  /// An id or a list of ids; empty if missing.
  std::vector<std::int64_t> ids(const char* name) const;

  /// The value of a named choice. A missing setting means the name `otherwise`; throws if that is null.
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

  /// Throws if the setting exists and differs from the supported value.
  void require(const char* name, const nlohmann::json& expected) const {
    if (has(name) && at(name) != expected) refuse(name, expected.is_null() ? "none" : expected.dump(), at(name));
  }

  /// A nested object of settings.
  JsonSettings below(const char* name) const;

  /// An object with arbitrary names; empty if missing.
  const nlohmann::json& members(const char* name) const;

  [[noreturn]] void refuse(const char* name, const std::string& expected, const nlohmann::json& given) const;

 private:
  const nlohmann::json& at(const char* name) const;

  std::string file_;
  const nlohmann::json& settings_;
};
