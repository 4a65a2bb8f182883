#include "strided.hpp"

#include <algorithm>

#include "../error.hpp"

namespace tapegrad::detail {

template <class T> T sum_run(const T* x, std::size_t count) {
  constexpr std::size_t kLanes = 16, kBlock = 512;
  double total = 0;
  while (count >= kLanes) {
    const std::size_t block = std::min(count, kBlock) / kLanes * kLanes;
    T lanes[kLanes] = {};  // independent sums, which the compiler keeps in vector registers
    for (std::size_t i = 0; i < block; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane];
    for (T lane : lanes) total += lane;
    x += block;
    count -= block;
  }
  for (std::size_t i = 0; i < count; ++i) total += x[i];
  return static_cast<T>(total);
}

template <class T> Array<T> gather(const Array<T>& source, const View& view) {
  Array<T> out(view.shape);
  const T* from = source.data() + view.offset;
  T* to = out.data();
  for_each_run<1>(view.shape, {view.strides}, [&](const Offsets<1>& offset, std::size_t count, const Offsets<1>& step) {
    const T* x = from + offset[0];
    if (step[0] == 1)
      std::copy_n(x, count, to);
    else if (step[0] == 0)
      std::fill_n(to, count, *x);
    else
      for (std::size_t i = 0; i < count; ++i) to[i] = x[static_cast<std::ptrdiff_t>(i) * step[0]];
    to += count;
  });
  return out;
}

template <class T> void scatter(Array<T>& destination, const Array<T>& elements, const View& view) {
  const T* from = elements.data();
  for_each_run<1>(view.shape, {view.strides}, [&](const Offsets<1>& offset, std::size_t count, const Offsets<1>& step) {
    T* x = destination.data() + view.offset + offset[0];
    for (; count > 0; --count, x += step[0]) *x = *from++;
  });
}

template <class T> void scatter_add(Array<T>& sum, const Array<T>& gradient, const View& view) {
  T* to = sum.data() + view.offset;
  const T* from = gradient.data();
  for_each_run<1>(view.shape, {view.strides}, [&](const Offsets<1>& offset, std::size_t count, const Offsets<1>& step) {
    T* x = to + offset[0];
    if (step[0] == 1)
      for (std::size_t i = 0; i < count; ++i) x[i] += from[i];
    else if (step[0] == 0)
      *x += sum_run(from, count);
    else
      for (std::size_t i = 0; i < count; ++i) x[static_cast<std::ptrdiff_t>(i) * step[0]] += from[i];
    from += count;
  });
}

template <class T> void add_summed(Array<T>& sum, const Array<T>& gradient) {
  require_usage(broadcasts_to(sum.shape(), gradient.shape()), "backward", "expected a gradient of shape ",
                to_string(sum.shape()), " or one that it broadcasts to, given ", to_string(gradient.shape()));
  scatter_add(sum, gradient, {gradient.shape(), broadcast_strides(sum.shape(), gradient.shape())});
}

#define INSTANTIATE(T)                                                \
  template T sum_run(const T*, std::size_t);                          \
  template Array<T> gather(const Array<T>&, const View&);             \
  template void scatter(Array<T>&, const Array<T>&, const View&);     \
  template void scatter_add(Array<T>&, const Array<T>&, const View&); \
  template void add_summed(Array<T>&, const Array<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad::detail
