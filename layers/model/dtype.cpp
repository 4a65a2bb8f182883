#include "internal/dtype.hpp"

#include <cstring>
#include <type_traits>

#include "../../engine/kernels/instruction_sets.hpp"

namespace tapegrad::detail {
namespace {

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

}  // namespace tapegrad::detail
