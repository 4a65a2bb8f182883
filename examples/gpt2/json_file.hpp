/// Reads JSON from untrusted files.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>

/// Reads JSON of at most 128 MB and 100 nested levels, without duplicate names in an object. Throws like read_file, and
/// std::runtime_error for other content.
nlohmann::json read_json(const std::filesystem::path& file);

/// A value in a message: the start of its JSON, printable.
std::string shown(const nlohmann::json& value);
