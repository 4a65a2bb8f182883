/// Files that others have written, read whole.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>

/// The bytes of a file. Throws std::runtime_error, naming the file, for what is no file, such as a folder or a pipe, is
/// larger than 512 MB, or cannot be read.
std::string read_bytes(const std::filesystem::path& file);

/// The JSON in a file, nested at most 100 deep, in which no object has a name twice. Throws as read_bytes does, and for
/// other bytes.
nlohmann::json read_json(const std::filesystem::path& file);

/// A value of a file in a message: the begin of its JSON, printable.
std::string shown(const nlohmann::json& value);
