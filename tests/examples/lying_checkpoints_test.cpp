// Corrupt checkpoints and other files: every reader refuses them in one line with the file's name, at once, and without
// allocating the claimed memory.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkpoint_bytes.hpp"
#include "run_example.hpp"
#include "sanitized.hpp"
#include "text.hpp"

namespace tg = tapegrad;
namespace fs = std::filesystem;

namespace {

#if defined(__OPTIMIZE__)
constexpr double kAtOnce = kSanitized ? 1 : 0.05;  // seconds
#else
constexpr double kAtOnce = 1;
#endif
constexpr long kLittle = kSanitized ? 32768 : 4096;  // kilobytes

struct CorruptFile {
  std::string name, bytes, words;  // words: of the error
};

std::string of_tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":)" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
}

std::string of_two(const std::string& first, const std::string& second) {
  return R"({"v":{"dtype":"F32","shape":[2],"data_offsets":)" + first +
         R"(},"w":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}";
}

std::vector<CorruptFile> corrupt_files() {
  const std::string data(8, '\0');
  std::vector<CorruptFile> all;
  const auto add = [&](const std::string& name, const std::string& header, const std::string& words) {
    all.push_back({name, checkpoint(header, data), words});
  };
  const auto add_length = [&](const std::string& name, std::uint64_t length) {
    all.push_back({name, raw<std::uint64_t>({length}) + "{}" + data, "a header of " + std::to_string(length)});
  };
  all.push_back({"empty", "", "of 8 bytes or more, got 0"});
  all.push_back({"short", "1234567", "of 8 bytes or more, got 7"});
  add_length("header of 2^60 bytes", std::uint64_t{1} << 60);
  add_length("header of 2^64 - 1 bytes", std::numeric_limits<std::uint64_t>::max());
  add_length("header of 100 million bytes", 100'000'000);
  add("extents whose product is 2^64", of_tensor("\"F32\"", "[4294967296,4294967296]", "[0,0]"),
      "of an addressable size");
  add("extents whose product is 1 beyond 2^64", of_tensor("\"F32\"", "[7,7905747460161236407]", "[0,4]"),
      "of an addressable size");
  add("extent whose bytes are 2^64", of_tensor("\"F32\"", "[4611686018427387904]", "[0,0]"), "of an addressable size");
  add("a terabyte", of_tensor("\"F32\"", "[250000000000]", "[0,1000000000000]"), "got 8");
  add("a hole of a terabyte", of_tensor("\"F32\"", "[0]", "[1000000000000,1000000000000]"), "to begin at byte 0");
  add("offsets beyond the end", of_tensor("\"F32\"", "[2]", "[8,16]"), "to begin at byte 0");
  add("offsets backwards", of_tensor("\"F32\"", "[2]", "[8,0]"), "in 8 bytes for its shape (2)");
  add("offsets that overlap", of_two("[0,8]", "[0,8]"), "to begin at byte 8");
  add("offsets that overlap in part", of_two("[0,8]", "[4,12]"), "to begin at byte 8");
  add("offset below 0", of_tensor("\"F32\"", "[2]", "[-8,0]"), "with two data_offsets");
  add("fraction of an offset", of_tensor("\"F32\"", "[2]", "[0,8.5]"), "with two data_offsets");
  add("name twice",
      R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)" + of_tensor("\"F32\"", "[0]", "[8,8]").substr(1),
      "each name once, got \"w\" twice");
  add("member twice", R"({"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "each name once");
  add("dtype that is none", of_tensor("\"F4\"", "[2]", "[0,8]"), "or F64, got \"F4\"");
  add("dtype that is a number", of_tensor("32", "[2]", "[0,8]"), "or F64, got 32");
  add("10,000 lists in lists", std::string(10'000, '['), "nests deeper");
  add("10,000 objects in objects", repeated("{\"w\":", 10'000), "nests deeper");
  add("10,000 levels of metadata", "{\"__metadata__\":" + repeated("{\"w\":", 10'000), "nests deeper");
  add("a million axes", of_tensor("\"F32\"", '[' + repeated("1,", 1'000'000) + "1]", "[0,8]"),
      "of at most 1000 characters");
  add("a million characters of dtype", of_tensor('"' + std::string(1'000'000, 'x') + '"', "[2]", "[0,8]"),
      "of at most 1000 characters");
  add("zeros", std::string(1000, '\0'), "a header in JSON");
  add("lines", "\n\r\x1b[31m\n", "a header in JSON");
  add("name that is not UTF-8", "{\"\xff\":1}", "a header in JSON");
  return all;
}

struct Cost {
  double seconds = std::numeric_limits<double>::infinity();
  long kilobytes = 0;  // maximum increase
};

long kilobytes_of(const std::string& entry) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(entry)) return std::stol(line.substr(entry.size()));
  return 0;
}

// The cost of a call: the minimum time of several calls, because the machine is shared, and the maximum memory.
Cost cost_of(const std::function<void()>& call) {
  Cost cost;
  for (int tries = 0; tries < 20 && (tries < 2 || cost.seconds > kAtOnce); ++tries) {
    std::ofstream("/proc/self/clear_refs") << 5 << std::flush;  // resets the peak
    const long before = kilobytes_of("VmHWM:");
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    cost.seconds = std::min(cost.seconds, passed.count());
    cost.kilobytes = std::max(cost.kilobytes, kilobytes_of("VmHWM:") - before);
  }
  return cost;
}

void check_refused(const std::string& front, const std::string& words, const std::function<void()>& read) {
  std::string message = "none";
  const Cost cost = cost_of([&] {
    try {
      read();
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
  });
  CAPTURE(message);
  CHECK(message.starts_with(front + ": "));
  CHECK(message.find(words, front.size()) != std::string::npos);
  CHECK(std::ranges::none_of(message, [](char c) { return static_cast<unsigned char>(c) < ' '; }));
  CHECK(message.size() < front.size() + 250);
  CHECK(cost.seconds < kAtOnce);
  CHECK(cost.kilobytes < kLittle);
}

// By all of the library's readers.
template <class Source>
void check_refused_by_all(const Source& source, const std::string& name, const std::string& words) {
  CAPTURE(name);
  One model;
  check_refused("[load] " + name, words, [&] { tg::load(model, source); });
  CHECK(model.w.value() == tg::Array<float>{1.0f, 2.0f});
  check_refused("[load_metadata] " + name, words, [&] { tg::load_metadata(source); });
  check_refused("[read_safetensors] " + name, words, [&] { tg::read_safetensors(source); });
}

// A sparse file of one gigabyte with the longest permitted header.
void write_holes(const fs::path& path, const std::string& front) {
  write_bytes(path, raw<std::uint64_t>({100'000'000}) + front);
  fs::resize_file(path, 1 << 30);
}

// Paths that are not readable files, each with its error.
std::vector<std::pair<fs::path, std::string>> make_others(const TemporaryFolder& folder) {
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("loop", folder / "loop");
  write_bytes(folder / "file", "x");
  const std::string no_file = "expected a file, got something else", none = "cannot be opened: ";
  std::vector<std::pair<fs::path, std::string>> others{{folder / "pipe", no_file}, {folder / ".", no_file}};
  for (const char* device : {"/dev/zero", "/dev/full", "/dev/null", "/dev/urandom"})
    others.emplace_back(device, no_file);
  others.emplace_back(folder / "missing", none + "No such file");
  others.emplace_back(folder / "file/below", none + "Not a directory");
  others.emplace_back(folder / "loop", none + "Too many levels of symbolic links");
  others.emplace_back(folder / std::string(300, 'x'), none + "File name too long");
  others.emplace_back("", none);
  return others;
}

struct Ended {
  int status = -1;
  std::string err;
  double seconds = 0;  // processor time
  long kilobytes = 0;  // maximum
};

Ended run_measured(std::vector<std::string> command, const std::string& err) {
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_addopen(&streams, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&streams, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  REQUIRE(::posix_spawn(&child, arguments[0], &streams, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&streams);
  int status = 0;
  rusage used{};
  REQUIRE(::wait4(child, &status, 0, &used) == child);
  const auto seconds = [](timeval time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(err), seconds(used.ru_utime) + seconds(used.ru_stime),
          used.ru_maxrss};
}

// The programs under timeout(1), in case they wait forever.
std::vector<std::vector<std::string>> commands_reading(const std::string& file) {
  const std::string examples = TAPEGRAD_EXAMPLES "/";
  return {{"/usr/bin/timeout", "20", examples + "text_classifier", "--load", file, "--classify", "a"},
          {"/usr/bin/timeout", "20", examples + "language_model", "--load", file},
          {"/usr/bin/timeout", "20", examples + "language_model", "--resume", file}};
}

void check_refused_by_programs(const TemporaryFolder& folder, const std::string& file, const std::string& words) {
  CAPTURE(file);
  static const std::vector<Ended> smallest = [&] {
    std::vector<Ended> of_each;
    for (const auto& command : commands_reading("missing"))
      of_each.push_back(run_measured(command, folder.path("err")));
    return of_each;
  }();
  const auto commands = commands_reading(file);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string program = fs::path(commands[i][2]).filename().string();
    CAPTURE(program);
    Ended ended, best;
    best.seconds = std::numeric_limits<double>::infinity();
    for (int tries = 0; tries < 10 && best.seconds > smallest[i].seconds + kAtOnce; ++tries) {
      ended = run_measured(commands[i], folder.path("err"));
      best.seconds = std::min(best.seconds, ended.seconds);
    }
    CAPTURE(ended.err);
    CHECK(ended.status == 1);
    CHECK(ended.err.starts_with(program + ": [load_metadata] " + file + ": "));
    CHECK(ended.err.find(words) != std::string::npos);
    CHECK(std::ranges::count(ended.err, '\n') == 1);
    CHECK(best.seconds < smallest[i].seconds + kAtOnce);
    CHECK(ended.kilobytes < smallest[i].kilobytes + kLittle);
  }
}

}  // namespace

TEST_CASE("A checkpoint with false sizes is refused in one line, at once, without allocating them") {
  const TemporaryFolder folder;
  for (const CorruptFile& corrupt : corrupt_files()) {
    CAPTURE(corrupt.name);
    const fs::path path = folder / "corrupt.safetensors";
    write_bytes(path, corrupt.bytes);
    check_refused_by_all(path, path.string(), corrupt.words);
    check_refused_by_all(std::span<const std::byte>(InMemory(corrupt.bytes)), "<bytes in memory>", corrupt.words);
  }
}

TEST_CASE("A sparse file is refused without reading it") {
  const TemporaryFolder folder;
  for (const std::string front : {"", "{\"w\":{", "{\"__metadata__\":{\"a\":\"", "   "}) {
    CAPTURE(front);
    write_holes(folder / "holes", front);
    check_refused_by_all(folder / "holes", (folder / "holes").string(), "a header in JSON");
  }
}

TEST_CASE("All readers refuse a path that is not a file at once") {
  const TemporaryFolder folder;
  for (const auto& [path, words] : make_others(folder)) check_refused_by_all(path, path.string(), words);
}

TEST_CASE("The programs refuse false checkpoints and other paths in one line, at once, without allocating") {
  const TemporaryFolder folder;
  const std::string file = folder.path("corrupt.safetensors");
  for (const CorruptFile& corrupt : corrupt_files()) {
    CAPTURE(corrupt.name);
    write_bytes(file, corrupt.bytes);
    check_refused_by_programs(folder, file, corrupt.words);
  }
  write_holes(folder / "holes", "{\"w\":{");
  check_refused_by_programs(folder, folder.path("holes"), "a header in JSON");
  for (const auto& [path, words] : make_others(folder))
    if (!path.empty()) check_refused_by_programs(folder, path.string(), words);
}
