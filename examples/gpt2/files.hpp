/// Reads whole files and checks folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

/// Reads a file. Throws std::runtime_error, naming it, if it is not a regular file, has more than `max_bytes` bytes, or
/// cannot be read.
std::string read_file(const std::filesystem::path& file, std::uintmax_t max_bytes = std::uintmax_t{512} << 20);

/// Throws like read_file if the file cannot be opened or is not a regular file. Ignores an empty name.
void check_input_file(const std::filesystem::path& file);

/// Creates a folder and its parents if missing. Throws std::runtime_error, naming the folder, on failure.
void make_folder(const std::filesystem::path& folder);

/// Throws std::runtime_error if a folder cannot be created or written to, or is the folder `read`. Ignores an empty
/// name.
void check_output_folder(const std::filesystem::path& folder, const std::filesystem::path& read);

/// Replaces a folder's model: `save_weights` writes its weights, `others` are further files, and the settings come
/// last. If the process is killed, the folder holds the old model, the new one, or no settings file, so that readers
/// never mix two models. If the weights cannot be written, the old model stays. Creates the folder.
void replace_model(const std::filesystem::path& folder, const char* settings_name, const std::string& settings,
                   const std::function<void()>& save_weights, const std::map<std::string, std::string>& others = {});

/// Throws std::runtime_error, naming the folder, if a replacement of its model was interrupted.
void require_complete_model(const std::filesystem::path& folder, const char* settings_name);
