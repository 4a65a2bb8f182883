/// Replacing files atomically, even across crashes. For the library's own sources.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

namespace tapegrad::detail {

/// An owned file descriptor; negative for none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {  // swaps
    std::swap(number_, other.number_);
    return *this;
  }
  operator int() const { return number_; }

 private:
  int number_;
};

/// A temporary file next to its target, with symbolic links resolved. Without a completed commit() the destructor
/// removes it, and the old file stays. The next writer in the folder removes leftovers of killed processes. (Linux's
/// unnamed O_TMPFILE would leave nothing behind, but can only be linked to an unused name, and some file systems lack
/// it.) Errors are std::runtime_error naming the operation and the file.
class AtomicFile {
 public:
  AtomicFile(const char* operation, std::filesystem::path target);
  ~AtomicFile();

  void write(const void* data, std::size_t size);

  /// Syncs the file, renames it to the target, and syncs the folder. Allocates no memory, so running out of memory
  /// cannot follow the rename.
  void commit();

 private:
  [[noreturn]] void fail_with_errno(const char* action) const;
  void follow_links();
  void create_temporary();

  const char* operation_;
  std::filesystem::path target_, temporary_;
  Descriptor folder_, file_;
};

/// Writes these bytes to a file, all of them or none.
void replace_file(const char* operation, const std::filesystem::path& path, const std::string& bytes);

}  // namespace tapegrad::detail
