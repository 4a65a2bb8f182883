/// Replaces files atomically. For the library's own sources.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

namespace tapegrad::detail {

/// Owns an open file descriptor and closes it; negative if empty.
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

/// A temporary file in the folder of its target, after resolving symbolic links. Without a finished commit(), the
/// destructor removes it and the old file stays. A killed process leaves it; the next write in the folder removes it.
/// (Linux's O_TMPFILE would leave nothing, but it can only be linked to an unused name and must then still be renamed,
/// and not every file system supports it.) Throws std::runtime_error naming the operation and the file.
class AtomicFile {
 public:
  AtomicFile(const char* operation, std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t size);

  /// Syncs the bytes to disk, renames the file to the target, and syncs the folder. Allocates no memory unless it
  /// fails: running out of memory never leaves the file replaced.
  void commit();

 private:
  [[noreturn]] void fail_with_errno(const char* action) const;
  void follow_links();
  void create_temporary();

  const char* operation_;
  std::filesystem::path target_, temporary_;
  Descriptor folder_, file_;
};

/// Replaces a file's contents by these bytes, all or nothing.
void replace_file(const char* operation, const std::filesystem::path& path, const std::string& bytes);

}  // namespace tapegrad::detail
