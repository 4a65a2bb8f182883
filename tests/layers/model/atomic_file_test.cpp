#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <limits>
#include <random>
#include <stdexcept>

#include "checkpoint_bytes.hpp"
#include "temporary_folder.hpp"

namespace tg = tapegrad;
namespace fs = std::filesystem;

namespace {

using Floats = tg::Array<float>;

// One parameter, large enough that writing it takes a while.
constexpr std::size_t kMegabyte = 1 << 18;
tg::Parameter<float> filled(float number, std::size_t numbers = kMegabyte) {
  return tg::Parameter<float>(Floats(tg::Shape{numbers}, number));
}

// The number that fills the whole file; fails if the file holds different numbers.
float number_in(const fs::path& path, std::size_t numbers = kMegabyte) {
  auto parameter = filled(-1, numbers);
  tg::load(parameter, path);
  const Floats& value = parameter.value();
  CHECK(static_cast<std::size_t>(std::count(value.begin(), value.end(), value(0))) == numbers);
  return value(0);
}

// Forks a process that saves to the path the given number of times, then waits. The child never returns to the tests.
pid_t start_saving(const fs::path& path, const tg::Parameter<float>& parameter, int times) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  for (int i = 0; i < times; ++i) {
    try {
      tg::save(parameter, path);
    } catch (...) {
      ::_exit(1);
    }
  }
  for (;;) ::pause();
}

void end(pid_t child) {
  REQUIRE(::kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));  // not exited with an error
}

}  // namespace

TEST_CASE("An unwritable file is refused by name") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(tg::save(One(), folder / "missing/a.safetensors"),
                       doctest::Contains("missing/a.safetensors: No such file or directory"), std::runtime_error);
  CHECK_THROWS_WITH_AS(tg::save(One(), ""), "[save] expected the name of a file, got ", std::runtime_error);
  fs::create_directory(folder / "sub");
  CHECK_THROWS_WITH_AS(tg::save(One(), folder / "sub"), doctest::Contains("[save] expected the name of a file, got"),
                       std::runtime_error);
  // Anything but a regular file, such as a pipe or a device, is not replaced.
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_AS(tg::save(One(), folder / "pipe"), std::runtime_error);
  CHECK(fs::is_fifo(folder / "pipe"));
  CHECK(folder.files() == 2);
}

TEST_CASE("Saving through a symbolic link replaces its target") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  write_bytes(folder / "sub/file", "old");
  fs::permissions(folder / "sub/file", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("../other", folder / "sub/link");
  fs::create_symlink("sub/file", folder / "other");
  fs::create_directory_symlink("sub", folder / "folder");
  fs::create_symlink(folder / "folder/link", folder / "chain");  // chain -> sub/link -> other -> sub/file

  tg::save(One(), folder / "chain");
  for (const char* link : {"chain", "sub/link", "other"}) {
    CAPTURE(link);
    CHECK(fs::is_symlink(folder / link));
    CHECK(bytes_of(folder / link).size() > 8);
  }
  CHECK(fs::is_regular_file(fs::symlink_status(folder / "sub/file")));
  CHECK(fs::status(folder / "sub/file").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(folder.files() == 4);
  CHECK(std::distance(fs::directory_iterator(folder / "sub"), {}) == 2);
}

TEST_CASE("Saving through a dangling link creates its target") {
  const TemporaryFolder folder;
  fs::create_symlink("new", folder / "link");
  tg::save(One(), folder / "link");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(fs::is_regular_file(fs::symlink_status(folder / "new")));
  One model;
  tg::load(model, folder / "link");

  fs::create_symlink("missing/new", folder / "lost");
  CHECK_THROWS_WITH_AS(tg::save(One(), folder / "lost"), doctest::Contains("missing/new: No such file or directory"),
                       std::runtime_error);
  CHECK(folder.files() == 3);
}

TEST_CASE("Saving through links to missing folders, or to something other than a file, is refused") {
  const TemporaryFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  fs::create_symlink("self", folder / "self");
  fs::create_directory(folder / "sub");
  fs::create_directory_symlink("sub", folder / "folder");
  for (const char* link : {"a", "b", "self"})
    CHECK_THROWS_WITH_AS(tg::save(One(), folder / link), doctest::Contains("Too many levels of symbolic links"),
                         std::runtime_error);
  CHECK_THROWS_WITH_AS(tg::save(One(), folder / "folder"), doctest::Contains("expected the name of a file, got"),
                       std::runtime_error);
  CHECK(folder.files() == 5);
  CHECK(fs::read_symlink(folder / "a") == "b");
}

TEST_CASE("Killing 200 saves leaves the old or the new file, and the next save removes temporary files") {
  constexpr std::size_t numbers = 8 * kMegabyte;
  const TemporaryFolder folder;
  const fs::path path = folder / "a.safetensors";
  tg::save(filled(0, numbers), path);
  const auto whole = fs::file_size(path);

  // The next kill comes later after a save that had not begun, and earlier after one that had ended. So on any machine,
  // under any load, most kills hit a save.
  std::mt19937 random(1);
  double delay = 10'000;                         // in microseconds
  int in_writing = 0, in_saving = 0, ended = 0;  // where the kills hit
  float before = 0;
  for (int i = 1; i <= 200; ++i) {
    const auto number = static_cast<float>(i);
    const pid_t child = start_saving(path, filled(number, numbers), 1);
    ::usleep(static_cast<useconds_t>(delay));
    end(child);
    const float now = number_in(path, numbers);
    std::uintmax_t left = 0;  // size of its temporary file in bytes
    for (const auto& file : fs::directory_iterator(path.parent_path()))
      if (file.path() != path) left = std::max<std::uintmax_t>(file.file_size(), 1);
    CHECK(folder.files() == (left > 0 ? 2 : 1));  // the previous kill's file was removed
    CHECK((now == before || (now == number && left == 0)));
    in_saving += left > 0;
    in_writing += left > 0 && left < whole;
    ended += now == number;
    const double low = left == 0 && now == before ? 1 : 0.7, high = now == number ? 1 : 1.4;
    delay = std::max(delay * std::uniform_real_distribution(low, high)(random), 10.0);
    before = now;
    if (left > 0) tg::save(One(), folder / "another");  // another name clears up as well
    fs::remove(folder / "another");
    CHECK(folder.files() == 1);
  }
  INFO("in_saving = ", in_saving, ", in_writing = ", in_writing, ", ended = ", ended);
  CHECK(in_saving > 20);
  CHECK(in_writing > 0);
  CHECK(ended > 0);
}

TEST_CASE("Simultaneous saves do not touch each other's temporary files") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.safetensors";
  constexpr int for_ever = std::numeric_limits<int>::max();
  const pid_t children[] = {start_saving(path, filled(1), for_ever), start_saving(path, filled(2), for_ever),
                            start_saving(folder / "b.safetensors", filled(3), for_ever)};
  for (int i = 0; i < 50; ++i) {
    tg::save(filled(4), path);
    const float number = number_in(path);
    CHECK((number == 1 || number == 2 || number == 4));
  }
  for (const pid_t child : children) end(child);
  tg::save(filled(5), path);
  CHECK(number_in(path) == 5);
  CHECK(folder.files() <= 2);
}

TEST_CASE("Only temporary files of dead writers are removed") {
  const TemporaryFolder folder;
  write_bytes(folder / ".tapegrad-1-0.tmp", "left behind");
  write_bytes(folder / "tapegrad-1-0.tmp", "of somebody");
  write_bytes(folder / ".tapegrad-notes", "of somebody");
  fs::create_directory(folder / ".tapegrad-folder.tmp");
  fs::create_symlink("tapegrad-1-0.tmp", folder / ".tapegrad-link.tmp");
  REQUIRE(::mkfifo((folder / ".tapegrad-pipe.tmp").c_str(), 0600) == 0);
  tg::save(One(), folder / "a.safetensors");
  CHECK_FALSE(fs::exists(folder / ".tapegrad-1-0.tmp"));
  CHECK(folder.files() == 6);
}
