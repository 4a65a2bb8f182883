// Checkpoints with false sizes and other files: every reader refuses them in one line with the file's name, at once,
// and without allocating the claimed memory. layers/model/checkpoint_refusal_test.cpp has more corrupt files.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkpoint_bytes.hpp"
#include "run_example.hpp"
#include "sanitized.hpp"

namespace tg = tapegrad;
namespace fs = std::filesystem;

namespace {

constexpr double kAtOnce = 1;                        // seconds of processor time
constexpr long kLittle = kSanitized ? 32768 : 4096;  // kilobytes

struct CorruptFile {
  std::string bytes, words;  // words: of the error
};

std::vector<CorruptFile> corrupt_files() {
  const std::string data(8, '\0');
  const auto tensor = [&](const std::string& shape, const std::string& offsets) {
    return checkpoint(R"({"w":{"dtype":"F32","shape":)" + shape + ",\"data_offsets\":" + offsets + "}}", data);
  };
  const auto of_length = [&](std::uint64_t length) {
    return CorruptFile{raw<std::uint64_t>({length}) + "{}" + data, "a header of " + std::to_string(length)};
  };
  return {of_length(std::uint64_t{1} << 60),
          of_length(~std::uint64_t{0}),
          of_length(100'000'000),
          {"", "of 8 bytes or more, got 0"},
          {tensor("[4294967296,4294967296]", "[0,0]"), "of an addressable size"},
          {tensor("[250000000000]", "[0,1000000000000]"), "got 8"},
          {tensor("[0]", "[1000000000000,1000000000000]"), "to begin at byte 0"},
          {tensor('[' + repeated("1,", 1'000'000) + "1]", "[0,8]"), "of at most 1000 characters"},
          {checkpoint(repeated("{\"w\":", 10'000), data), "nests deeper"},
          {checkpoint("\n\r\x1b[31m\n", data), "a header in JSON"}};
}

/// The maximum memory of this process since the last reset.
long peak_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  return 0;
}

void check_refused(const std::string& front, const std::string& words, const std::function<void()>& read) {
  std::ofstream("/proc/self/clear_refs") << 5 << std::flush;  // resets the peak
  const long before = peak_kilobytes();
  const std::clock_t start = std::clock();
  std::string message = "none";
  try {
    read();
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  CHECK(double(std::clock() - start) / CLOCKS_PER_SEC < kAtOnce);
  CHECK(peak_kilobytes() - before < kLittle);
  CAPTURE(message);
  CHECK(message.starts_with(front + ": "));
  CHECK(message.find(words, front.size()) != std::string::npos);
  CHECK(std::ranges::none_of(message, [](char c) { return static_cast<unsigned char>(c) < ' '; }));
  CHECK(message.size() < front.size() + 250);
}

// By all of the library's readers.
template <class Source>
void check_refused_by_all(const Source& source, const std::string& name, const std::string& words) {
  One model;
  check_refused("[load] " + name, words, [&] { tg::load(model, source); });
  CHECK(model.w.value() == tg::Array<float>{1.0f, 2.0f});
  check_refused("[load_metadata] " + name, words, [&] { tg::load_metadata(source); });
  check_refused("[read_safetensors] " + name, words, [&] { tg::read_safetensors(source); });
}

// By the programs. Their memory holds the mapped sparse file, but no copy of it.
void check_refused_by_programs(const std::string& file, const std::string& words) {
  const std::string limits = kSanitized ? "ulimit -t 10" : "ulimit -t 2; ulimit -v 2000000";
  for (const std::string command : {"text_classifier --classify a --load ", "language_model --load ",
                                    "language_model --resume ", "pronounce --pronounce a --load "}) {
    const std::string program = command.substr(0, command.find(' '));
    const Run run = run_shell(limits + "; timeout 20 $examples/" + command + "'" + file + "'");
    check_message(run, program, words);
    CHECK(run.err.starts_with(program + ": [load_metadata] " + file + ": "));
  }
}

}  // namespace

TEST_CASE("A checkpoint with false sizes is refused in one line, at once, without allocating them") {
  const TemporaryFolder folder;
  const fs::path path = folder / "corrupt.safetensors";
  for (const CorruptFile& corrupt : corrupt_files()) {
    write_bytes(path, corrupt.bytes);
    check_refused_by_all(path, path.string(), corrupt.words);
    check_refused_by_all(std::span<const std::byte>(InMemory(corrupt.bytes)), "<bytes in memory>", corrupt.words);
    check_refused_by_programs(path.string(), corrupt.words);
  }
}

TEST_CASE("A sparse file is refused without reading it") {
  const TemporaryFolder folder;
  const fs::path path = folder / "holes";
  for (const std::string front : {"", "{\"w\":{", "{\"__metadata__\":{\"a\":\"", "   "}) {
    CAPTURE(front);
    write_bytes(path, raw<std::uint64_t>({100'000'000}) + front);  // the longest permitted header
    fs::resize_file(path, 1 << 30);
    check_refused_by_all(path, path.string(), "a header in JSON");
  }
  check_refused_by_programs(path.string(), "a header in JSON");
}

TEST_CASE("All readers refuse a path that is not a readable file at once") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("loop", folder / "loop");
  const std::string no_file = "expected a regular file, got a folder, pipe or device", none = "cannot be opened: ";
  const std::vector<std::pair<fs::path, std::string>> others{
      {folder / "pipe", no_file},
      {folder / ".", no_file},
      {"/dev/zero", no_file},
      {"/dev/urandom", no_file},
      {folder / "missing", none + "No such file"},
      {folder.write("file", "x") + "/below", none + "Not a directory"},
      {folder / "loop", none + "Too many levels of symbolic links"},
      {folder / std::string(300, 'x'), none + "File name too long"}};
  for (const auto& [path, words] : others) {
    check_refused_by_all(path, path.string(), words);
    check_refused_by_programs(path.string(), words);
  }
}
