#include "checkpoint.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "internal/atomic_file.hpp"
#include "internal/safetensors.hpp"
#include "internal/tensor_file.hpp"

namespace tapegrad {
namespace detail {

template <class T>
void save_parameters(NamedConstParameters<T> named, const std::filesystem::path& path, const Metadata& metadata) {
  std::ranges::sort(named, {}, [](const auto& entry) { return entry.first; });
  SafetensorsHeader header;
  header.metadata = metadata;
  std::uint64_t place = 0;
  for (const auto& [name, parameter] : named) {
    const std::uint64_t end = place + parameter->size() * sizeof(T);
    header.tensors[name] = {dtype_of<T>(), parameter->shape(), place, end};
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

namespace {

template <class T> void read_parameters(const NamedParameters<T>& named, TensorFile& file) {
  StoredTensors& stored = file.tensors();
  std::vector<StoredTensor> tensors;  // in the model's order
  for (const auto& [name, parameter] : named) {
    const auto tensor = stored.extract(name);
    if (!tensor) file.refuse("expected ", name, " of shape ", to_string(parameter->shape()), ", given no such tensor");
    if (tensor.mapped().shape != parameter->shape())
      file.refuse("expected ", name, " of shape ", to_string(parameter->shape()), ", given ",
                  to_string(tensor.mapped().shape));
    tensors.push_back(std::move(tensor.mapped()));
  }
  if (!stored.empty()) {
    const auto& [name, tensor] = *std::ranges::min_element(
        stored, {}, [](const auto& entry) -> auto& { return entry.first; });
    file.refuse("expected the model's parameters alone, given ", quoted(name), " of shape ", to_string(tensor.shape));
  }

  std::vector<Array<T>> values;  // all of them read before the first is set
  for (std::size_t i = 0; i < named.size(); ++i) values.push_back(file.read<T>(named[i].first, tensors[i]));
  for (std::size_t i = 0; i < named.size(); ++i) named[i].second->set_value(std::move(values[i]));
}

}  // namespace

template <class T> void load_parameters(const NamedParameters<T>& named, const std::filesystem::path& path) {
  TensorFile file("load", path);
  read_parameters(named, file);
}

template <class T> void load_parameters(const NamedParameters<T>& named, std::span<const std::byte> bytes) {
  TensorFile file("load", bytes);
  read_parameters(named, file);
}

#define INSTANTIATE(T)                                                                                      \
  template void save_parameters<T>(NamedConstParameters<T>, const std::filesystem::path&, const Metadata&); \
  template void load_parameters<T>(const NamedParameters<T>&, const std::filesystem::path&);                \
  template void load_parameters<T>(const NamedParameters<T>&, std::span<const std::byte>);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace detail

Metadata load_metadata(const std::filesystem::path& path) {
  return std::move(detail::TensorFile("load_metadata", path).metadata());
}

Metadata load_metadata(std::span<const std::byte> bytes) {
  return std::move(detail::TensorFile("load_metadata", bytes).metadata());
}

}  // namespace tapegrad
