/// JSON that others have written.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>

/// The JSON in a file of at most 128 MB, nested at most 100 deep, in which no object has a name twice. Throws as
/// read_file does, and for other bytes.
nlohmann::json read_json(const std::filesystem::path& file);

/// A value of a file in a message: the begin of its JSON, printable.
std::string shown(const nlohmann::json& value);
