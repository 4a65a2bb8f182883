/// Replacing a file so that no crash leaves half of it. For the library's own sources.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

namespace tapegrad::detail {

/// A file that is open, closed with it. None is below 0.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  operator int() const { return number_; }

 private:
  void close() const;
  int number_;
};

/// A temporary file beside the one that it will replace, which is the one that symbolic links lead to. Unless commit()
/// has finished, the destructor removes it and the old file stays. What a killed process leaves behind is removed by
/// the next that writes in the folder. (A file without a name, Linux's O_TMPFILE, would leave nothing behind; but it
/// can only be linked to a name that is free, from which it must still be renamed, and not every file system has them.)
/// Errors are std::runtime_error naming the operation and the file.
class AtomicFile {
 public:
  AtomicFile(const char* operation, std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t size);

  /// Puts the file in the target's place once its bytes are on the disk, and waits until this is on the disk too. Needs
  /// no memory, so that the file has not been replaced when it ends.
  void commit();

 private:
  [[noreturn]] void fail_with_errno(const char* action) const;
  void follow_links();
  void create_temporary();

  const char* operation_;
  std::filesystem::path target_, temporary_;
  Descriptor folder_, file_;
};

/// Puts these bytes into a file, all of them or none.
void replace_file(const char* operation, const std::filesystem::path& path, const std::string& bytes);

}  // namespace tapegrad::detail
