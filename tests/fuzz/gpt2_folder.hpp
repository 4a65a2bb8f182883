/// A folder for gpt2's files, in memory if possible.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "../../examples/gpt2/byte_level.hpp"

namespace fuzz {

class Gpt2Folder {
 public:
  Gpt2Folder() {
    const std::filesystem::path memory = "/dev/shm";
    std::string name =
        (std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path()) / "fuzzed_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder");
    path_ = name;
  }
  ~Gpt2Folder() { std::filesystem::remove_all(path_); }
  Gpt2Folder(const Gpt2Folder&) = delete;
  Gpt2Folder& operator=(const Gpt2Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Replaces \x01 in the content by the vocabulary entries of the 256 bytes; this keeps inputs short.
  void write(const std::string& name, std::string_view content) const {
    static const std::string bytes = [] {
      std::string entries;
      for (int byte = 0; byte < 256; ++byte) {
        std::string character = spell(std::string(1, static_cast<char>(byte)));
        if (character == "\"" || character == "\\") character.insert(0, 1, '\\');
        entries += (byte == 0 ? "\"" : ",\"") + character + "\":" + std::to_string(byte);
      }
      return entries;
    }();
    std::ofstream out(path_ / name, std::ios::binary);
    for (const char c : content) c == '\x01' ? out << bytes : out << c;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace fuzz
