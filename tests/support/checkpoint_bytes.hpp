/// Reads and writes files byte by byte, for tests of checkpoints.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <vector>

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

template <class Number> std::string raw(std::initializer_list<Number> numbers) {
  return {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(Number)};
}

/// A safetensors file: the header's length, the header, the tensors' data.
inline std::string checkpoint(const std::string& header, const std::string& data) {
  return raw<std::uint64_t>({header.size()}) + header + data;
}

/// The bytes of the model's file.
template <class M> std::string saved_bytes(const M& model, const tapegrad::Metadata& metadata = {}) {
  const std::vector<std::byte> bytes = tapegrad::save_bytes(model, metadata);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The bytes in memory at an odd address. `InMemory(bytes)` converts to the argument of load and read_safetensors.
class InMemory {
 public:
  explicit InMemory(const std::string& bytes) : shifted_(' ' + bytes) {}
  operator std::span<const std::byte>() const { return std::as_bytes(std::span(shifted_)).subspan(1); }

 private:
  std::string shifted_;
};

/// A model with one parameter, w of shape (2), for handwritten files.
struct One {
  tapegrad::Parameter<float> w{tapegrad::Array<float>{1.0f, 2.0f}};
  TAPEGRAD_FIELDS(w)
};
