/// Splits a safetensors file into parts that can be changed and reassembled.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "checkpoint_bytes.hpp"

struct FileParts {
  struct Tensor {
    std::string name, dtype;
    std::vector<std::size_t> shape;
    std::string bytes;
  };

  std::vector<Tensor> tensors;  ///< sorted by name after reading; bytes() writes them in this order
  tapegrad::Metadata texts;

  FileParts() = default;
  explicit FileParts(const std::filesystem::path& path) : FileParts(bytes_of(path)) {}
  explicit FileParts(const std::string& file) : texts(tapegrad::load_metadata(InMemory(file))) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    const auto header = nlohmann::json::parse(file.substr(8, length));
    for (const auto& [name, tensor] : header.items()) {
      if (name == "__metadata__") continue;
      const std::size_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
      tensors.push_back({name, tensor["dtype"], tensor["shape"], file.substr(8 + length + begin, end - begin)});
    }
  }

  /// Throws std::out_of_range if there is none.
  Tensor& at(const std::string& name) { return tensors.at(place_of(name)); }
  void erase(const std::string& name) { tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(place_of(name))); }
  bool contains(const std::string& name) const { return place_of(name) < tensors.size(); }

  template <class Number> void add(const std::string& name, const char* dtype, std::initializer_list<Number> numbers) {
    tensors.push_back({name, dtype, {numbers.size()}, raw(numbers)});
  }

  /// The file's bytes.
  std::string bytes() const {
    nlohmann::json header = nlohmann::json::object();
    if (!texts.empty()) header["__metadata__"] = texts;
    std::string data;
    for (const auto& [name, dtype, shape, numbers] : tensors) {
      header[name] = {
          {"dtype", dtype}, {"shape", shape}, {"data_offsets", {data.size(), data.size() + numbers.size()}}};
      data += numbers;
    }
    return checkpoint(header.dump(), data);
  }

 private:
  std::size_t place_of(const std::string& name) const {
    std::size_t place = 0;
    while (place < tensors.size() && tensors[place].name != name) ++place;
    return place;
  }
};
