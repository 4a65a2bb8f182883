#include "initialization.hpp"

#include <algorithm>

#include "skip_initialization.hpp"

namespace tapegrad {

template <class T> void initialize_normal(Linear<T>& layer, double standard_deviation, Generator& generator) {
  if (SkipInitialization::is_active()) return;
  layer.weight.set_value(normal<T>(layer.weight.shape(), 0, standard_deviation, generator));
  if (layer.bias.defined()) layer.bias.set_value(Array<T>(layer.bias.shape(), T(0)));
}

template <class T> void initialize_normal(Embedding<T>& layer, double standard_deviation, Generator& generator) {
  if (SkipInitialization::is_active()) return;
  auto weight = normal<T>(layer.weight.shape(), 0, standard_deviation, generator);
  if (layer.padding_idx) {
    const std::size_t width = weight.shape()[1], first = static_cast<std::size_t>(*layer.padding_idx) * width;
    std::copy_n(layer.weight.value().data() + first, width, weight.data() + first);
  }
  layer.weight.set_value(std::move(weight));
}

#define INSTANTIATE(T)                                             \
  template void initialize_normal(Linear<T>&, double, Generator&); \
  template void initialize_normal(Embedding<T>&, double, Generator&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
