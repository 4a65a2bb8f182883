#include "internal/tensor_file.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

// A safetensors file: the length of the header in 8 bytes, the header, the tensors' numbers.

namespace tapegrad::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLongestHeader = 100'000'000;  // bytes; the format's own implementation refuses longer ones too

}  // namespace

TensorFile::TensorFile(const char* operation, const std::filesystem::path& path)
    : operation_(operation), source_(path.string()) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    refuse("expected a file, given something else");
  file_.open(path, std::ios::binary);
  if (!file_) refuse("cannot be opened: ", std::generic_category().message(errno));
  file_.seekg(0, std::ios::end);
  read_header(static_cast<std::uint64_t>(file_.tellg()));
}

TensorFile::TensorFile(const char* operation, std::span<const std::byte> bytes)
    : operation_(operation), source_("<bytes in memory>"), bytes_(bytes) {
  read_header(bytes.size());
}

void TensorFile::read_header(std::uint64_t size) {
  if (size < 8) refuse("expected a safetensors file, of 8 bytes or more, given ", size);
  std::uint64_t length = 0;
  copy(0, &length, sizeof length);
  if (length > size - 8 || length > kLongestHeader)
    refuse("expected a safetensors file, its header shorter than its ", size, " bytes, given a header of ", length);
  data_begin_ = 8 + length;
  const auto read = [&](std::uint64_t place, char* to, std::size_t count) { copy(8 + place, to, count); };
  try {
    header_ = SafetensorsHeader::parse(read, length, size - data_begin_);
  } catch (const HeaderError& error) {
    refuse(error.what());
  }
}

void TensorFile::read_bytes(const std::string& name, const StoredTensor& tensor, void* to) {
  const std::uint64_t count = tensor.end - tensor.begin;
  copy(data_begin_ + tensor.begin, to, count);
  if (tensor.dtype != Dtype::BOOL) return;
  const auto* bytes = static_cast<const unsigned char*>(to);
  const auto* wrong = std::find_if(bytes, bytes + count, [](unsigned char byte) { return byte > 1; });
  if (wrong != bytes + count) refuse("expected ", quoted(name), " of bools, 0 or 1, given ", int{*wrong});
}

template <class T> void TensorFile::read_floats(const StoredTensor& tensor, T* to, std::size_t count) {
  std::uint64_t place = data_begin_ + tensor.begin;
  if (tensor.dtype == dtype_of<T>()) return copy(place, to, count * sizeof(T));
  std::byte buffer[32768];
  const std::size_t size = info_of(tensor.dtype).size;
  while (count > 0) {
    const std::size_t some = std::min(count, sizeof buffer / size);
    copy(place, buffer, some * size);
    convert_floats(tensor.dtype, buffer, some, to);
    place += some * size;
    to += some;
    count -= some;
  }
}

template void TensorFile::read_floats(const StoredTensor&, float*, std::size_t);
template void TensorFile::read_floats(const StoredTensor&, double*, std::size_t);

void TensorFile::copy(std::uint64_t place, void* to, std::size_t count) {
  if (count == 0) return;  // there may be no memory to copy from or to
  if (!file_.is_open()) {
    std::memcpy(to, bytes_.data() + place, count);
  } else if (!file_.seekg(static_cast<std::streamoff>(place))
                  .read(static_cast<char*>(to), static_cast<std::streamsize>(count))) {
    refuse("expected ", count, " bytes more, which cannot be read");
  }
}

}  // namespace tapegrad::detail
