#include "internal/tensor_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <type_traits>

#include "../../engine/kernels/instruction_sets.hpp"
#include "internal/atomic_file.hpp"

// A safetensors file: the length of the header in 8 bytes, the header, the tensors' numbers.

namespace tapegrad::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kMaxHeaderLength = 100'000'000;  // bytes, as in the format's own implementation

template <class Stored, class T> void convert(const std::byte* bytes, std::size_t count, T* to) {
  parallel_vectorized(count, [=](std::size_t begin, std::size_t end) {
    if constexpr (std::is_same_v<Stored, T>) {
      std::memcpy(to + begin, bytes + begin * sizeof(T), (end - begin) * sizeof(T));
    } else {
      for (std::size_t i = begin; i < end; ++i) {
        Stored number;
        std::memcpy(&number, bytes + i * sizeof(Stored), sizeof(Stored));
        to[i] = static_cast<T>(number);
      }
    }
  });
}

}  // namespace

template <class T> void convert_floats(Dtype from, const std::byte* bytes, std::size_t count, T* to) {
  switch (from) {
    case Dtype::F16:
      return convert<Half>(bytes, count, to);
    case Dtype::BF16:
      return convert<BFloat16>(bytes, count, to);
    case Dtype::F32:
      return convert<float>(bytes, count, to);
    default:
      return convert<double>(bytes, count, to);
  }
}

template void convert_floats(Dtype, const std::byte*, std::size_t, float*);
template void convert_floats(Dtype, const std::byte*, std::size_t, double*);

TensorFile::TensorFile(const char* operation, const std::filesystem::path& path)
    : operation_(operation), source_(path.string()) {
  map(path);
  read_header();
}

TensorFile::TensorFile(const char* operation, std::span<const std::byte> bytes)
    : operation_(operation), source_("<bytes in memory>"), bytes_(bytes) {
  read_header();
}

void TensorFile::map(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    refuse("expected a regular file, got a folder, pipe or device");
  const auto check = [&](bool holds, const char* what) {
    if (!holds) refuse("cannot be ", what, ": ", std::generic_category().message(errno));
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // does not wait, even for a pipe
  check(file >= 0, "opened");
  struct stat found {};
  check(::fstat(file, &found) == 0, "opened");
  const auto size = static_cast<std::size_t>(found.st_size);
  if (size == 0) return;  // an empty file cannot be mapped
  void* const place = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  check(place != MAP_FAILED, "mapped");
  mapping_ = {static_cast<const std::byte*>(place),
              [size](const std::byte* bytes) { ::munmap(const_cast<std::byte*>(bytes), size); }};
  bytes_ = {mapping_.get(), size};
}

void TensorFile::read_header() {
  const std::size_t size = bytes_.size();
  if (size < 8) refuse("expected a safetensors file of 8 bytes or more, got ", size);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes_.data(), sizeof length);
  if (length > size - 8)
    refuse("expected a safetensors file with a header shorter than the file's ", size, " bytes, got a header of ",
           length);
  if (length > kMaxHeaderLength)
    refuse("expected a header of at most ", kMaxHeaderLength, " bytes, got one of ", length);
  data_ = bytes_.subspan(8 + length);
  try {
    header_ = SafetensorsHeader::parse({reinterpret_cast<const char*>(bytes_.data()) + 8, length}, data_.size());
  } catch (const HeaderError& error) {
    refuse(error.what());
  }
}

std::span<const std::byte> TensorFile::bytes_of(const std::string& name, const StoredTensor& tensor) const {
  const auto bytes = data_.subspan(tensor.begin, tensor.end - tensor.begin);
  if (tensor.dtype != Dtype::BOOL) return bytes;
  const auto wrong = std::ranges::find_if(bytes, [](std::byte byte) { return byte > std::byte{1}; });
  if (wrong != bytes.end())
    refuse("expected ", quoted(name), " with bools of 0 or 1, got ", std::to_integer<int>(*wrong));
  return bytes;
}

std::shared_ptr<const std::byte> TensorFile::share(const std::string& name, const StoredTensor& tensor) const {
  const auto bytes = bytes_of(name, tensor);
  if (mapping_) return {mapping_, bytes.data()};
  const std::shared_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  std::ranges::copy(bytes, copy.get());
  return {copy, copy.get()};
}

}  // namespace tapegrad::detail
