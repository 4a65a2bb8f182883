/// Changes the options in a saved run's file, for values no program writes.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

#include "file_parts.hpp"

/// Rewrites the run with another value at `pointer`, such as "/training/steps", in the options stored in the metadata's
/// `entry`.
inline void change_kept_option(const std::filesystem::path& from, const std::filesystem::path& to,
                               const std::string& entry, const std::string& pointer, const nlohmann::json& value) {
  FileParts file(from);
  auto kept = nlohmann::json::parse(file.texts.at(entry));
  kept.at(nlohmann::json::json_pointer(pointer)) = value;
  file.texts[entry] = kept.dump();
  write_bytes(to, file.bytes());
}
