/// Draws views and joins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "program.hpp"

namespace fuzz::steps {

inline Step transpose(Draw& d) {
  const Input x = d.input();
  const std::ptrdiff_t a = d.axis(x), b = d.axis(x);
  return Step({x}, [=](const auto& v) { return tg::transpose(v[0], a, b); });
}

inline Step permute(Draw& d) {
  const Input x = d.input();
  std::vector<std::ptrdiff_t> axes;
  for (std::size_t i = 0; i < x.axes(); ++i)
    axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(d.below(i + 1)), static_cast<std::ptrdiff_t>(i));
  if (!axes.empty() && d.chance(4)) axes[0] = d.axis(x);
  return Step({x}, [=](const auto& v) { return tg::permute(v[0], axes); });
}

/// Merges axes, splits one, or requests any shape.
inline Step reshape(Draw& d) {
  const Input x = d.input();
  std::vector<std::ptrdiff_t> shape(x.shape.begin(), x.shape.end());
  const std::size_t i = d.below(std::max<std::size_t>(1, shape.size()));
  switch (d.below(5)) {
    case 0:
      shape = {-1};
      break;
    case 1:
      if (!shape.empty()) shape[i] = -1;
      break;
    case 2:
      if (i + 1 < shape.size()) {
        shape[i] *= shape[i + 1];
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
      break;
    case 3:
      if (!shape.empty() && shape[i] % 2 == 0) {
        shape[i] /= 2;
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(i), 2);
      }
      break;
    default:
      const tg::Shape any = d.shape();
      shape.assign(any.begin(), any.end());
  }
  return Step({x}, [=](const auto& v) { return tg::reshape(v[0], shape); });
}

inline Step unsqueeze(Draw& d) {
  const Input x = d.input();
  const auto axes = static_cast<std::ptrdiff_t>(x.axes());
  if (axes > 6) throw Draw::TooLarge{};
  const std::ptrdiff_t axis = static_cast<std::ptrdiff_t>(d.below(2 * x.axes() + 4)) - axes - 2;
  return Step({x}, [=](const auto& v) { return tg::unsqueeze(v[0], axis); });
}

inline Step expand(Draw& d) {
  const Input x = d.input();
  std::vector<std::ptrdiff_t> shape(x.shape.begin(), x.shape.end());
  std::size_t count = std::max<std::size_t>(1, x.size());
  const auto draw_extent = [&] {
    const std::size_t extent = d.extent();
    Draw::require_quick(count *= std::max<std::size_t>(1, extent));
    return static_cast<std::ptrdiff_t>(extent);
  };
  for (std::ptrdiff_t& extent : shape)
    if ((extent == 1 && d.chance(2)) || d.chance(32))
      extent = draw_extent();
    else if (d.chance(4))
      extent = -1;
  for (std::size_t more = shape.size() > 4 ? 0 : d.below(3); more > 0; --more)
    shape.insert(shape.begin(), draw_extent());
  return Step({x}, [=](const auto& v) { return tg::expand(v[0], shape); });
}

inline Step repeat(Draw& d) {
  const Input x = d.input();
  std::vector<std::ptrdiff_t> repeats(x.axes() > 5 ? x.axes() : x.axes() + d.below(2));
  if (!repeats.empty() && d.chance(32)) repeats.pop_back();
  std::size_t count = std::max<std::size_t>(1, x.size());
  for (std::ptrdiff_t& n : repeats) {
    n = static_cast<std::ptrdiff_t>(d.below(4));
    Draw::require_quick(count *= static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, n)));
  }
  if (!repeats.empty() && d.chance(32)) repeats[0] = -1;
  return Step({x}, [=](const auto& v) { return tg::repeat(v[0], repeats); });
}

inline Step repeat_interleave(Draw& d) {
  const Input x = d.input();
  const std::size_t repeats = d.below(5);
  const std::ptrdiff_t axis = d.axis(x);
  Draw::require_quick(x.size() * repeats);
  return Step({x}, [=](const auto& v) { return tg::repeat_interleave(v[0], repeats, axis); });
}

inline Step select(Draw& d) {
  const Input x = d.input();
  const std::ptrdiff_t axis = d.axis(x);
  const auto extent = static_cast<std::ptrdiff_t>(Draw::extent_of(x, axis));
  const std::ptrdiff_t index = static_cast<std::ptrdiff_t>(d.below(static_cast<std::size_t>(2 * extent + 1))) - extent;
  return Step({x}, [=](const auto& v) { return tg::select(v[0], axis, index); });
}

inline Step narrow(Draw& d) {
  const Input x = d.input();
  const std::ptrdiff_t axis = d.axis(x);
  const std::size_t extent = Draw::extent_of(x, axis), start = d.below(extent + 1),
                    length = d.below(extent - start + 1) + (d.chance(32) ? 1 : 0);
  const std::ptrdiff_t from =
      static_cast<std::ptrdiff_t>(start) - (d.chance(8) ? static_cast<std::ptrdiff_t>(extent) : 0);
  return Step({x}, [=](const auto& v) { return tg::narrow(v[0], axis, from, length); });
}

inline Step split(Draw& d) {
  const Input x = d.input();
  const std::ptrdiff_t axis = d.axis(x);
  const std::size_t size = d.below(Draw::extent_of(x, axis) + 2), which = d.below(8);
  return Step({x}, [=](const auto& v) {
    const auto pieces = tg::split(v[0], size, axis);
    return pieces[which % pieces.size()];
  });
}

inline Step roll(Draw& d) {
  const Input x = d.input();
  const std::ptrdiff_t shift = static_cast<std::ptrdiff_t>(d.below(600)) - 300, axis = d.axis(x);
  if (d.chance(4)) return Step({x}, [=](const auto& v) { return tg::roll(v[0], shift); });
  return Step({x}, [=](const auto& v) { return tg::roll(v[0], shift, axis); });
}

/// f takes the axis and Values of one shape, or of shapes different only along the axis.
template <class F> Step joined(Draw& d, bool may_differ, F f) {
  std::vector<Input> inputs{d.input()};
  const std::ptrdiff_t axis = d.axis(inputs[0]);
  for (std::size_t more = d.below(4); more > 0; --more) {
    tg::Shape shape = inputs[0].shape;
    const auto i = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::ptrdiff_t>(shape.size()) : axis);
    if (may_differ && i < shape.size()) shape[i] = d.extent();
    inputs.push_back(d.input(shape));
  }
  std::size_t count = 0;
  for (const Input& input : inputs) count += input.size();
  Draw::require_quick(count);
  return Step(inputs, [=](const auto& v) { return f(v, axis); });
}

inline Step cat(Draw& d) {
  return joined(d, true, [](const auto& v, std::ptrdiff_t axis) { return tg::cat(v, axis); });
}

inline Step stack(Draw& d) {
  return joined(d, false, [](const auto& v, std::ptrdiff_t axis) { return tg::stack(v, axis); });
}

}  // namespace fuzz::steps
