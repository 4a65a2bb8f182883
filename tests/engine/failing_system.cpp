// System errors: every call for writing a file fails once, writes are shortened and interrupted, and calls come in a
// crash-safe order. This is a separate program because it replaces the C library's calls.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <functional>

#include "checkpoint_bytes.hpp"
#include "temporary_folder.hpp"

namespace tg = tapegrad;
namespace fs = std::filesystem;

namespace {

// The calls since recording began; "sync" and similar calls with the file's name.
struct Recording {
  bool is_on = false;
  std::vector<std::string> calls{};
  std::size_t fails_at = ~std::size_t{0};  // index of the failing call
  int reason = 0;                          // its errno
  std::size_t longest_write = ~std::size_t{0};
  bool interrupts = false;  // every second write
};
Recording recording;

// Records a call; true if it should fail.
bool noted(const std::string& call, const fs::path& file) {
  if (!recording.is_on) return false;
  recording.calls.push_back(call + ' ' + (file.extension() == ".tmp" ? "temporary" : file.filename().string()));
  if (recording.calls.size() - 1 != recording.fails_at) return false;
  errno = recording.reason;
  return true;
}

fs::path path_of(int descriptor) {
  std::error_code none;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), none);
}

int as_int(long result) { return static_cast<int>(result); }

}  // namespace

extern "C" {
int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  if (noted("open", path)) return -1;
  return as_int(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t write(int descriptor, const void* data, size_t size) {
  if (recording.is_on && recording.interrupts && !recording.calls.empty() && recording.calls.back() != "interrupted ") {
    noted("interrupted", "");
    errno = EINTR;
    return -1;
  }
  if (recording.is_on && noted("write", path_of(descriptor))) return -1;
  return ::syscall(SYS_write, descriptor, data, std::min(size, recording.longest_write));
}

int fsync(int descriptor) {
  if (recording.is_on && noted("sync", path_of(descriptor))) return -1;
  return as_int(::syscall(SYS_fsync, descriptor));
}

int rename(const char* from, const char* to) noexcept {
  if (noted("rename", to)) return -1;
  return as_int(::syscall(SYS_rename, from, to));
}
}

namespace {

struct Model {
  tg::Parameter<float> weight{tg::Array<float>(tg::Shape{1000}, 1.0f)};
  tg::Parameter<double> bias{tg::Array<double>{1.0, 2.0}};
  TAPEGRAD_FIELDS(weight, bias)
};

// All functions that write a file.
struct Writer {
  std::string operation;
  std::function<void(const fs::path&)> write;
};

std::vector<Writer> writers() {
  const tg::AttentionMap<float> map{{"a", "b"}, {"c"}, tg::Array<float>(tg::Shape{1, 2, 1}, 0.5f)};
  return {{"save", [](const fs::path& path) { tg::save(Model(), path); }},
          {"save_page",
           [](const fs::path& path) {
             tg::Tape tape({.keep_values = true});
             const Model model;
             tg::sum(model.weight * model.weight).backward();
             tg::save_page(tape, path);
           }},
          {"save_npy", [=](const fs::path& path) { tg::save_npy(map.weights, path); }},
          {"save_csv", [=](const fs::path& path) { tg::save_csv(map, path); }},
          {"save_text", [](const fs::path& path) { tg::save_text(std::string(5000, 'a'), path); }}};
}

// The message of the exception thrown by the call; empty if none.
std::string recorded(Recording settings, const std::function<void()>& call) {
  recording = std::move(settings);
  recording.is_on = true;
  std::string message;
  try {
    call();
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  recording.is_on = false;
  return message;
}

}  // namespace

TEST_CASE("A file replaces the old one only after its bytes are on the disk, and then its folder is synced") {
  const TemporaryFolder folder;
  for (const Writer& writer : writers()) {
    CAPTURE(writer.operation);
    CHECK(recorded({}, [&] { writer.write(folder / "file"); }) == "");
    std::vector<std::string> calls = recording.calls;
    calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
    const std::string name = (folder / ".").parent_path().filename().string();
    CHECK(calls == std::vector<std::string>{"open " + name, "open temporary", "write temporary", "sync temporary",
                                            "rename file", "sync " + name});
  }
}

TEST_CASE("If any system call fails, the error names it, and the old or the new file is complete") {
  const TemporaryFolder folder;
  const fs::path path = folder / "file";
  for (const Writer& writer : writers()) {
    CAPTURE(writer.operation);
    writer.write(path);
    const std::string fresh = bytes_of(path);
    for (const int reason : {EIO, ENOSPC, EDQUOT, EROFS, EACCES}) {
      std::size_t refused = 0;
      for (std::size_t n = 0;; ++n) {
        write_bytes(path, "old");
        const std::string message = recorded({.fails_at = n, .reason = reason}, [&] { writer.write(path); });
        if (message.empty()) break;
        ++refused;
        CAPTURE(recording.calls.back());
        CAPTURE(message);
        CHECK(message.starts_with('[' + writer.operation + "] cannot "));
        CHECK(message.ends_with(path.string() + ": " + std::generic_category().message(reason)));
        const std::string bytes = bytes_of(path);
        const bool replaced = std::ranges::find(recording.calls, "rename file") < recording.calls.end() - 1;
        CHECK(bytes == (replaced ? fresh : "old"));
        CHECK(folder.files() == 1);
      }
      CHECK(refused >= 6);
      CHECK(bytes_of(path) == fresh);
    }
  }
}

TEST_CASE("A file system that cannot sync folders is not an error") {
  const TemporaryFolder folder;
  std::size_t at = 0;
  recorded({}, [&] { tg::save(Model(), folder / "file"); });
  at = recording.calls.size() - 1;
  CHECK(recording.calls[at].starts_with("sync "));
  CHECK(recorded({.fails_at = at, .reason = EINVAL}, [&] { tg::save(Model(), folder / "file"); }) == "");
}

TEST_CASE("Short and interrupted writes continue") {
  const TemporaryFolder folder;
  for (const Writer& writer : writers()) {
    CAPTURE(writer.operation);
    writer.write(folder / "whole");
    CHECK(recorded({.longest_write = 1000, .interrupts = true}, [&] { writer.write(folder / "file"); }) == "");
    CHECK(bytes_of(folder / "file") == bytes_of(folder / "whole"));
    CHECK(std::ranges::count(recording.calls, "interrupted ") > 0);
  }
}
