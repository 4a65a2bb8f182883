#include "internal/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "../../engine/array/internal/error.hpp"

namespace tapegrad::detail {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

// Short, so that it is a good name wherever the target's is, and different in every process and thread.
std::filesystem::path temporary_beside(const std::filesystem::path& target) {
  static std::atomic<unsigned> count{0};
  return folder_of(target) / (".tapegrad-" + std::to_string(::getpid()) + '-' + std::to_string(count++) + ".tmp");
}

}  // namespace

AtomicFile::AtomicFile(const char* operation, std::filesystem::path target)
    : operation_(operation), target_(std::move(target)) {
  struct stat old {};
  const bool replaces = ::stat(target_.c_str(), &old) == 0;
  if (!target_.has_filename() || (replaces && !S_ISREG(old.st_mode)))  // a rename would replace even a device
    fail<std::runtime_error>(operation_, "expected the name of a file, given ", target_.string());
  do {  // past what a crashed process of the same number may have left
    temporary_ = temporary_beside(target_);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) fail_with_errno("create a file beside");
  if (replaces) ::fchmod(descriptor_, old.st_mode & 0777);  // those who may read it remain the same
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, next, size);
    if (written < 0 && errno != EINTR) fail_with_errno("write");
    if (written < 0) continue;
    next += written;
    size -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail_with_errno("sync");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_with_errno("close");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with_errno("replace");
  temporary_.clear();
  sync_folder();
}

void AtomicFile::sync_folder() const {
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail_with_errno("sync the folder of");
  const bool synced = ::fsync(folder) == 0 || errno == EINVAL;  // file systems that cannot sync folders say EINVAL
  const int reason = errno;
  ::close(folder);
  errno = reason;
  if (!synced) fail_with_errno("sync the folder of");
}

void AtomicFile::fail_with_errno(const char* action) const {
  fail<std::runtime_error>(operation_, "cannot ", action, ' ', target_.string(), ": ",
                           std::generic_category().message(errno));
}

}  // namespace tapegrad::detail
