/// The options in the file of a run that is kept, changed as no program writes them.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

#include "file_parts.hpp"

/// Writes the run again with another value in the place that `pointer` names, "/training/steps", among the options that
/// the metadata has under `entry`.
inline void change_kept_option(const std::filesystem::path& from, const std::filesystem::path& to,
                               const std::string& entry, const std::string& pointer, const nlohmann::json& value) {
  FileParts file(from);
  auto kept = nlohmann::json::parse(file.texts.at(entry));
  kept.at(nlohmann::json::json_pointer(pointer)) = value;
  file.texts[entry] = kept.dump();
  write_bytes(to, file.bytes());
}
