#include "checkpoint.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <system_error>

#include "../../engine/array/internal/error.hpp"
#include "internal/atomic_file.hpp"
#include "internal/safetensors.hpp"

// A safetensors file: the length of the header in 8 bytes, the header, the tensors' numbers.

namespace tapegrad {
namespace {

using detail::Dtype;
using detail::SafetensorsHeader;
using detail::StoredTensor;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLongestHeader = 100'000'000;  // bytes; the format's own implementation refuses longer ones too

// A file that is open for reading, its header read and found right.
class CheckpointFile {
 public:
  CheckpointFile(const char* operation, const std::filesystem::path& path)
      : operation_(operation), path_(path.string()) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
      refuse("expected a file, given something else");
    file_.open(path, std::ios::binary);
    if (!file_) refuse("cannot be opened: ", std::generic_category().message(errno));
    file_.seekg(0, std::ios::end);
    const auto size = static_cast<std::uint64_t>(file_.tellg());
    file_.seekg(0);
    if (size < 8) refuse("expected a safetensors file, of 8 bytes or more, given ", size);
    std::uint64_t length = 0;
    read_bytes(&length, sizeof length);
    if (length > size - 8 || length > kLongestHeader)
      refuse("expected a safetensors file, its header shorter than its ", size, " bytes, given a header of ", length);
    std::string text(length, ' ');
    read_bytes(text.data(), length);
    data_begin_ = 8 + length;
    try {
      header_ = SafetensorsHeader::parse(text, size - data_begin_);
    } catch (const std::runtime_error& error) {
      refuse(error.what());
    }
  }

  SafetensorsHeader& header() { return header_; }

  // The numbers of a tensor, as T whatever the file has.
  template <class T> Array<T> read(const StoredTensor& tensor) {
    Array<T> array(tensor.shape);
    file_.seekg(static_cast<std::streamoff>(data_begin_ + tensor.begin));
    if (tensor.dtype == Dtype::F32)
      read_numbers<float>(array);
    else
      read_numbers<double>(array);
    return array;
  }

  template <class... Parts> [[noreturn]] void refuse(const Parts&... parts) const {
    detail::fail<std::runtime_error>(operation_, path_, ": ", parts...);
  }

 private:
  template <class Stored, class T> void read_numbers(Array<T>& array) {
    if constexpr (std::is_same_v<Stored, T>) {
      read_bytes(array.data(), array.size() * sizeof(T));
    } else {
      Stored buffer[4096];
      for (std::size_t i = 0; i < array.size(); i += std::size(buffer)) {
        const std::size_t count = std::min(std::size(buffer), array.size() - i);
        read_bytes(buffer, count * sizeof(Stored));
        std::transform(buffer, buffer + count, array.data() + i, [](Stored x) { return static_cast<T>(x); });
      }
    }
  }

  void read_bytes(void* to, std::size_t count) {
    if (!file_.read(static_cast<char*>(to), static_cast<std::streamsize>(count)))
      refuse("expected ", count, " bytes more, which cannot be read");
  }

  const char* operation_;
  std::string path_;
  std::ifstream file_;
  std::uint64_t data_begin_ = 0;
  SafetensorsHeader header_;
};

}  // namespace

namespace detail {

template <class T>
void save_parameters(NamedConstParameters<T> named, const std::filesystem::path& path, const Metadata& metadata) {
  std::ranges::sort(named, {}, [](const auto& entry) { return entry.first; });
  SafetensorsHeader header;
  header.metadata = metadata;
  std::uint64_t place = 0;
  for (const auto& [name, parameter] : named) {
    const std::uint64_t end = place + parameter->size() * sizeof(T);
    header.tensors[name] = {std::is_same_v<T, float> ? Dtype::F32 : Dtype::F64, parameter->shape(), place, end};
    place = end;
  }
  const std::string text = header.format();
  const std::uint64_t length = text.size();

  AtomicFile file("save", path);
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  for (const auto& [name, parameter] : named) file.write(parameter->value().data(), parameter->size() * sizeof(T));
  file.commit();
}

template <class T> void load_parameters(const NamedParameters<T>& named, const std::filesystem::path& path) {
  CheckpointFile file("load", path);
  auto& stored = file.header().tensors;
  std::vector<StoredTensor> tensors;  // in the model's order
  for (const auto& [name, parameter] : named) {
    const auto tensor = stored.extract(name);
    if (!tensor) file.refuse("expected ", name, " of shape ", to_string(parameter->shape()), ", given no such tensor");
    if (tensor.mapped().shape != parameter->shape())
      file.refuse("expected ", name, " of shape ", to_string(parameter->shape()), ", given ",
                  to_string(tensor.mapped().shape));
    tensors.push_back(std::move(tensor.mapped()));
  }
  if (!stored.empty())
    file.refuse("expected the model's parameters alone, given ", quoted(stored.begin()->first), " of shape ",
                to_string(stored.begin()->second.shape));

  std::vector<Array<T>> values;  // all of them read before the first is set
  for (const StoredTensor& tensor : tensors) values.push_back(file.read<T>(tensor));
  for (std::size_t i = 0; i < named.size(); ++i) named[i].second->set_value(std::move(values[i]));
}

#define INSTANTIATE(T)                                                                                      \
  template void save_parameters<T>(NamedConstParameters<T>, const std::filesystem::path&, const Metadata&); \
  template void load_parameters<T>(const NamedParameters<T>&, const std::filesystem::path&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace detail

Metadata load_metadata(const std::filesystem::path& path) {
  return std::move(CheckpointFile("load_metadata", path).header().metadata);
}

}  // namespace tapegrad
