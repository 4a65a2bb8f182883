#include "json_settings.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "json_file.hpp"

using nlohmann::json;

JsonSettings::JsonSettings(std::string file, const json& settings) : file_(std::move(file)), settings_(settings) {
  if (!settings.is_object())
    throw std::runtime_error(file_ + ": expected an object of settings, got " + shown(settings));
}

std::size_t JsonSettings::size(const char* name) const {
  const json& value = at(name);
  constexpr std::size_t largest = std::numeric_limits<std::int32_t>::max();
  if (!value.is_number_integer() || value < 1 || value > largest)
    refuse(name, "a whole number from 1 to " + std::to_string(largest), value);
  return value;
}

double JsonSettings::positive(const char* name) const {
  const json& value = at(name);
  if (!value.is_number() || !(value > 0.0) || !std::isfinite(value.get<double>()))
    refuse(name, "a positive number", value);
  return value;
}

bool JsonSettings::flag_or(const char* name, bool otherwise) const {
  if (!has(name)) return otherwise;
  if (!at(name).is_boolean()) refuse(name, "true or false", at(name));
  return at(name);
}

std::vector<std::int64_t> JsonSettings::ids(const char* name) const {
  if (!has(name)) return {};
  const json list = at(name).is_array() ? at(name) : json::array({at(name)});
  for (const json& id : list)
    if (!id.is_number_integer()) refuse(name, "an id or a list of ids", at(name));
  return list;
}

JsonSettings JsonSettings::below(const char* name) const {
  if (!at(name).is_object()) refuse(name, "an object", at(name));
  return {file_ + ": " + name, at(name)};
}

const json& JsonSettings::members(const char* name) const {
  static const json none = json::object();
  if (!has(name)) return none;
  if (!at(name).is_object()) refuse(name, "an object", at(name));
  return at(name);
}

void JsonSettings::refuse(const char* name, const std::string& expected, const json& given) const {
  throw std::runtime_error(file_ + ": " + name + ": expected " + expected + ", got " + shown(given));
}

const json& JsonSettings::at(const char* name) const {
  const auto found = settings_.find(name);
  if (found == settings_.end()) throw std::runtime_error(file_ + ": expected the setting " + name + ", got none");
  return *found;
}
