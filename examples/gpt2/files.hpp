/// Reads whole files and checks folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

/// Reads a file. Throws std::runtime_error, naming it, if it is not a regular file, has more than `most` bytes, or
/// cannot be read.
std::string read_file(const std::filesystem::path& file, std::uintmax_t most = std::uintmax_t{512} << 20);

/// Throws like read_file if the file cannot be opened or is not a regular file. Ignores an empty name.
void check_input_file(const std::filesystem::path& file);

/// Creates a folder and its parents if missing. Throws std::runtime_error, naming the folder, on failure.
void make_folder(const std::filesystem::path& folder);

/// Throws std::runtime_error if a folder cannot be created or written to, or is the folder `read`. Ignores an empty
/// name.
void check_output_folder(const std::filesystem::path& folder, const std::filesystem::path& read);
