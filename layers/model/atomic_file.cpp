#include "internal/atomic_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "../../engine/array/internal/error.hpp"

namespace tapegrad::detail {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

constexpr const char *kPrefix = ".tapegrad-", *kSuffix = ".tmp";

// A short name, valid wherever the target's is, and unique per process and thread.
std::filesystem::path temporary_path_for(const std::filesystem::path& target) {
  static std::atomic<unsigned> count{0};
  return folder_of(target) / (kPrefix + std::to_string(::getpid()) + '-' + std::to_string(count++) + kSuffix);
}

// Removes the temporary files of killed writers. A running one holds a lock on its file; the system releases it when
// the process ends. Files in doubt stay. (Uses readdir, since std::filesystem's iterator terminates without memory.)
void remove_leftovers(const std::filesystem::path& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(path.c_str()), ::closedir);
  if (!entries) return;
  const int folder = ::dirfd(entries.get());
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const Descriptor file(::openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file < 0) continue;
    struct stat found {};
    if (::fstat(file, &found) == 0 && S_ISREG(found.st_mode) && ::flock(file, LOCK_SH | LOCK_NB) == 0)
      ::unlinkat(folder, entry->d_name, 0);
  }
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

AtomicFile::AtomicFile(const char* operation, std::filesystem::path target)
    : operation_(operation), target_(std::move(target)) {
  struct stat old {};
  const bool replaces = ::stat(target_.c_str(), &old) == 0;
  if (!target_.has_filename() || (replaces && !S_ISREG(old.st_mode)))  // rename would replace even a device
    fail<std::runtime_error>(operation_, "expected the name of a file, got ", target_.string());
  follow_links();
  if (replaces && ::access(target_.c_str(), W_OK) != 0)
    fail_with_errno("write");  // rename ignores the file's permissions
  folder_ = Descriptor(::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_ < 0) fail_with_errno("open the folder of");
  remove_leftovers(folder_of(target_));
  create_temporary();
  if (replaces) ::fchmod(file_, old.st_mode & 0777);  // keeps the permissions
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

// rename would replace a symbolic link itself. The last link's target need not exist.
void AtomicFile::follow_links() {
  constexpr int kMaxLinks = 40;  // the system's limit
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(std::filesystem::symlink_status(target_, error)); ++links) {
    errno = ELOOP;
    if (links == kMaxLinks) fail_with_errno("write");
    target_ = folder_of(target_) / std::filesystem::read_symlink(target_, error);
  }
}

void AtomicFile::create_temporary() {
  for (;;) {
    temporary_ = temporary_path_for(target_);
    file_ = Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file_ < 0 && errno == EEXIST) continue;  // used by a process with the same id in another container
    if (file_ < 0) fail_with_errno("create a temporary file next to");
    // Without locks in the file system, remove_leftovers() fails to lock too, so leftovers stay.
    while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) continue;
    if (::access(temporary_.c_str(), F_OK) == 0) return;  // not removed as a leftover before it was locked
  }
}

void AtomicFile::write(const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(file_, next, size);
    if (written < 0 && errno != EINTR) fail_with_errno("write");
    if (written < 0) continue;
    next += written;
    size -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  if (::fsync(file_) != 0) fail_with_errno("sync");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with_errno("replace");
  temporary_.clear();
  if (::fsync(folder_) != 0 && errno != EINVAL)  // from file systems unable to sync folders
    fail_with_errno("sync the folder of");
}

void AtomicFile::fail_with_errno(const char* action) const {
  fail<std::runtime_error>(operation_, "cannot ", action, ' ', target_.string(), ": ",
                           std::generic_category().message(errno));
}

void replace_file(const char* operation, const std::filesystem::path& path, const std::string& bytes) {
  AtomicFile file(operation, path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace tapegrad::detail
