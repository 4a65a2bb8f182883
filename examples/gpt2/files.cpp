#include "files.hpp"

#include <tapegrad/tapegrad.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "../common/progress.hpp"

namespace fs = std::filesystem;

namespace {

std::runtime_error refusal(const fs::path& file, const std::string& reason) {
  return std::runtime_error(file.string() + ": " + reason);
}

std::ifstream open_to_read(const fs::path& file) {
  std::error_code error;
  const auto status = fs::status(file, error);
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw refusal(file, "expected a regular file, got a folder, pipe or device");
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) throw refusal(file, std::string("cannot be opened: ") + std::strerror(errno));
  return in;
}

}  // namespace

std::string read_file(const fs::path& file, std::uintmax_t max_bytes) {
  std::ifstream in = open_to_read(file);
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error) throw refusal(file, "cannot be read: " + error.message());
  if (size > max_bytes)
    throw refusal(
        file, "expected at most " + examples::with_commas(max_bytes) + " bytes, got " + examples::with_commas(size));
  std::string bytes(size, '\0');
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size)))
    throw refusal(file, "cannot read " + examples::with_commas(size) + " bytes");
  return bytes;
}

void check_input_file(const fs::path& file) {
  if (!file.empty()) open_to_read(file);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw std::runtime_error(folder.string() + ": cannot create the folder: " + error.message());
}

void check_output_folder(const fs::path& folder, const fs::path& read) {
  if (folder.empty()) return;
  std::error_code error;
  const auto refuse = [&](const std::string& reason) {
    throw std::runtime_error(folder.string() + ": expected " + reason);
  };
  if (fs::equivalent(folder, read, error)) refuse("an output folder, got the input folder");
  fs::path existing = fs::absolute(folder, error);
  for (; existing.has_relative_path(); existing = existing.parent_path()) {
    const fs::file_type type = fs::symlink_status(existing, error).type();
    if (type == fs::file_type::none) refuse("an output folder, got a path that cannot be created: " + error.message());
    if (type != fs::file_type::not_found) break;
  }
  if (!fs::is_directory(existing, error)) refuse("an output folder, got a file or a broken link, " + existing.string());
  if (access(existing.c_str(), W_OK | X_OK) != 0) refuse("a writable folder");
}

namespace {

/// Where the old settings are while a model is being replaced.
fs::path replaced_path(const fs::path& settings) { return settings.string() + ".replaced"; }

}  // namespace

void replace_model(const fs::path& folder, const char* settings_name, const std::string& settings,
                   const std::function<void()>& save_weights, const std::map<std::string, std::string>& others) {
  make_folder(folder);
  const fs::path file = folder / settings_name, old = replaced_path(file);
  std::error_code none;
  const bool replaces = fs::exists(file, none);
  if (replaces) fs::rename(file, old);
  try {
    save_weights();
  } catch (...) {
    if (replaces) fs::rename(old, file, none);
    throw;
  }
  for (const auto& [name, bytes] : others) tapegrad::save_text(bytes, folder / name);
  tapegrad::save_text(settings, file);
  fs::remove(old, none);
}

void require_complete_model(const fs::path& folder, const char* settings_name) {
  const fs::path file = folder / settings_name, old = replaced_path(file);
  std::error_code none;
  if (!fs::exists(file, none) && fs::exists(old, none))
    throw std::runtime_error(folder.string() +
                             ": expected a complete model, got one whose saving was interrupted; save it again (" +
                             old.filename().string() + " holds the earlier settings)");
}
