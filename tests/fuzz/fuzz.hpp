/// The frame of a fuzzer. A program includes it once and defines fuzz_one() and seeds().
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../../examples/common/printable.hpp"
#include "findings.hpp"

namespace fuzz {

/// Checks one input.
void fuzz_one(std::string_view input);

/// The initial inputs: `<fuzzer> --make-corpus FOLDER` writes them.
std::vector<std::string> seeds();

/// The error as printed by a program: one printable line.
template <class Call> std::string program_refusal(Call call) { return refusal(call, examples::one_line); }

/// A file in memory with these bytes.
class File {
 public:
  explicit File(std::string_view bytes) : descriptor_(::memfd_create("fuzzed", 0)) {
    if (descriptor_ < 0 || ::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("no file in memory");
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc != 3 || std::string_view((*argv)[1]) != "--make-corpus") return 0;
  const std::filesystem::path folder = (*argv)[2];
  std::filesystem::create_directories(folder);
  std::size_t number = 0;
  for (const std::string& seed : fuzz::seeds())
    std::ofstream(folder / ("seed" + std::to_string(number++)), std::ios::binary) << seed;
  std::exit(number > 0 ? 0 : 1);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::fuzz_one({reinterpret_cast<const char*>(data), size});
  return 0;
}
