/// Checksums, random arrays and cases, shared by the files of `bits`.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace bits {

namespace tg = tapegrad;

/// A function that prints checksums.
struct Case {
  const char* name;
  void (*run)();
};

/// One case for each group of operations.
template <class T> std::vector<Case> operation_cases();

inline std::string context;  ///< prefix of every line: "float, 2 threads, hooks: "

/// The 64-bit FNV-1a checksum of bytes.
class Checksum {
 public:
  void add(const void* data, std::size_t bytes) {
    for (const auto* p = static_cast<const unsigned char*>(data); bytes > 0; ++p, --bytes)
      hash_ = (hash_ ^ *p) * 0x100000001b3U;
  }
  template <class T> void add(const tg::Array<T>& array) { add(array.data(), array.size() * sizeof(T)); }
  void print(const std::string& label) const {
    std::printf("%s%s %016llx\n", context.c_str(), label.c_str(), static_cast<unsigned long long>(hash_));
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

/// Prints a label, the shape and the checksum of an array.
template <class T> void print(const std::string& label, const tg::Array<T>& array) {
  Checksum sum;
  sum.add(array);
  sum.print(label + ' ' + tg::to_string(array.shape()));
}
/// Prints the checksum of a tensor's value.
template <class T> void print(const std::string& label, const tg::Tensor<T>& x) { print(label, x.value()); }
/// Prints the checksum of its gradient, or "none".
template <class T> void print_grad(const std::string& label, const tg::Tensor<T>& x) {
  x.has_grad() ? print("grad " + label, x.grad())
               : (void)std::printf("%sgrad %s none\n", context.c_str(), label.c_str());
}

/// Ids in [0, end), fixed by the seed.
inline tg::IntArray random_ids(const tg::Shape& shape, std::int64_t end, std::uint64_t seed = 5) {
  tg::Generator generator(seed);
  return tg::IntArray(xt::cast<std::int64_t>(tg::uniform<double>(shape, 0, static_cast<double>(end), generator)));
}

/// Numbers in [low, 2), fixed by the seed.
template <class T> tg::Array<T> random_array(const tg::Shape& shape, std::uint64_t seed = 6, double low = -2) {
  tg::Generator generator(seed);
  return tg::uniform<T>(shape, low, 2, generator);
}

}  // namespace bits
