/// Whole files, and folders of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

/// The bytes of a file. Throws std::runtime_error, naming the file, for what is no file, such as a folder or a pipe,
/// has more than `most` bytes, or cannot be read.
std::string read_file(const std::filesystem::path& file, std::uintmax_t most = std::uintmax_t{512} << 20);

/// Throws as read_file does for what cannot be opened or is no file, such as a folder; an empty name is none.
void check_input_file(const std::filesystem::path& file);

/// Makes a folder, and those that it is in, where there is none. Throws std::runtime_error, naming it,
/// where that cannot be.
void make_folder(const std::filesystem::path& folder);

/// Throws std::runtime_error when a folder cannot be written to, or be made, or is the one that is read; an empty name
/// is none.
void check_output_folder(const std::filesystem::path& folder, const std::filesystem::path& read);
