/// Draws reductions, selection, row functions and attention.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "smooth.hpp"

namespace fuzz::steps {

inline Step var(Draw& d) {
  const Input x = d.input();
  const tg::Axes axes = d.axes(x);
  const double correction = d.number(0, 2);
  const tg::KeepDims keep{d.chance(2)};
  return Step({x}, [=](const auto& v) { return tg::var(v[0], axes, correction, keep); });
}

inline Step gather(Draw& d) {
  const Input x = d.input();
  const std::ptrdiff_t axis = d.axis(x);
  const std::size_t extent = Draw::extent_of(x, axis);
  tg::Shape shape = x.shape;
  for (std::size_t& n : shape) n = d.below(n + 1);
  const tg::IntArray index = d.ids(shape, extent);
  return Step({x}, [=](const auto& v) { return tg::gather(v[0], axis, index); });
}

inline Step max(Draw& d) {
  const Input x = d.input();
  const std::ptrdiff_t axis = d.axis(x);
  const tg::KeepDims keep{d.chance(2)};
  return Step(
      {x}, [=](const auto& v) { return tg::max(v[0], axis, keep).values; },
      [=](const Values<double>& v) { return has_clear_maximum(v[0], {axis}); });
}

inline Step argmax(Draw& d) {
  const Input x = d.input();
  const std::ptrdiff_t axis = d.axis(x);
  return Step(
      {x},
      [=]<class V>(const V& v) { return tg::Tensor<NumberOf<V>>(tg::Array<NumberOf<V>>(tg::argmax(v[0], axis) % 64)); },
      [=](const Values<double>& v) { return has_clear_maximum(v[0], {axis}); });
}

inline Step topk(Draw& d) {
  const Input x = d.input();
  const std::ptrdiff_t axis = d.axis(x);
  const std::size_t k = d.below(Draw::extent_of(x, axis) + 1) + (d.chance(32) ? 1 : 0);
  const bool largest = !d.chance(2);
  return Step(
      {x}, [=](const auto& v) { return tg::topk(v[0], k, axis, largest).values; },
      [=](const Values<double>& v) { return has_order(v[0], axis); });
}

/// The last one or two axes of x.
inline tg::Shape normalized(Draw& d, const Input& x) {
  const std::size_t axes = 1 + d.below(2);
  return {x.shape.end() - static_cast<std::ptrdiff_t>(std::min(axes, x.axes())), x.shape.end()};
}

inline Step layer_norm(Draw& d) {
  const Input x = d.input();
  const tg::Shape shape = normalized(d, x);
  const double eps = d.chance(2) ? 1e-5 : 0.1;
  if (d.chance(4)) return Step({x, d.input(shape)}, [=](const auto& v) { return tg::layer_norm(v[0], v[1], {}, eps); });
  return Step({x, d.input(shape), d.input(shape)},
              [=](const auto& v) { return tg::layer_norm(v[0], v[1], v[2], eps); });
}

inline Step rms_norm(Draw& d) {
  const Input x = d.input();
  const tg::Shape shape = normalized(d, x);
  const double eps = d.chance(2) ? 1e-3 : 0.1;
  if (d.chance(4)) return Step({x}, [=](const auto& v) { return tg::rms_norm(v[0], {}, eps); });
  return Step({x, d.input(shape)}, [=](const auto& v) { return tg::rms_norm(v[0], v[1], eps); });
}

inline Step embedding(Draw& d) {
  const Input weight = d.input({d.extent(), d.extent()});
  const std::size_t rows = weight.axes() > 0 ? weight.shape[0] : 1, width = weight.axes() > 1 ? weight.shape[1] : 1;
  const tg::IntArray ids = d.ids(d.shape(3), rows);
  Draw::require_quick(ids.size() * width);
  return Step({weight}, [=](const auto& v) { return tg::embedding(v[0], ids); });
}

/// Makes the mask within the step, since this may throw.
using MakeMask = std::function<tg::AttentionMask()>;

inline MakeMask attention_mask(Draw& d, std::size_t B, std::size_t H, std::size_t T, std::size_t S) {
  using tg::AttentionMask;
  switch (d.below(8)) {
    case 0:
      return AttentionMask::causal;
    case 1:
      return [keep = d.mask({B, S})] { return AttentionMask::key_padding(keep); };
    case 2:
      return [lengths = d.ids(d.chance(2) ? tg::Shape{B, T} : tg::Shape{B}, S + 2)] {
        return AttentionMask::valid_lens(lengths);
      };
    case 3:
      return [allowed = d.mask(d.shape_for({B, H, T, S}))] { return AttentionMask::boolean(allowed); };
    case 4:
      return [bias = Draw::numbers<double>(d.key(), d.shape_for({B, H, T, S}), -2, 2)] {
        return AttentionMask::additive(bias);
      };
    case 5:
      return [keep = d.mask({B, S})] { return AttentionMask::causal() & AttentionMask::key_padding(keep); };
    default:
      return AttentionMask::none;
  }
}

struct AttentionSizes {
  std::size_t B, H, T, S, D, E;
  MakeMask mask;
  double dropout;
  std::optional<double> scale;
  std::uint64_t key;

  explicit AttentionSizes(Draw& d)
      : B(d.below(3)), H(1 + d.below(3)), T(d.extent()), S(d.extent()), D(d.extent()), E(d.extent()) {
    Draw::require_quick(B * H * std::max<std::size_t>(1, T) * std::max<std::size_t>(1, S) * (D + E + 1));
    mask = attention_mask(d, B, H, T, S);
    dropout = d.chance(4) ? 0.5 : 0;
    if (d.chance(4)) scale = d.number(-1, 1);
    key = d.key();
  }

  /// Calls f with the options.
  template <class F> auto with_options(F f) const {
    tg::Generator generator(key);
    return f(tg::AttentionOptions{.dropout = dropout, .scale = scale, .generator = &generator});
  }
};

/// Drops the head axis, or the batch and head axes, both optional in attention.
inline tg::Shape without(std::size_t axes, tg::Shape shape) {
  if (axes > 0) shape.erase(shape.begin() + 1);
  if (axes > 1) shape.erase(shape.begin());
  return shape;
}

inline Step scaled_dot_product_attention(Draw& d) {
  const AttentionSizes n(d);
  const std::size_t left_out = d.chance(2) ? d.below(3) : 0;
  const Input q = d.input(without(left_out, {n.B, n.H, n.T, n.D})),
              k = d.input(without(left_out, {n.B, n.H, n.S, n.D})),
              v = d.input(without(left_out, {n.B, n.H, n.S, n.E}));
  return Step({q, k, v}, [=](const auto& x) {
    return n.with_options(
        [&](const auto& options) { return tg::scaled_dot_product_attention(x[0], x[1], x[2], n.mask(), options); });
  });
}

inline Step multi_head_attention(Draw& d) {
  const AttentionSizes n(d);
  const std::size_t groups = d.chance(2) ? n.H : 1 + d.below(n.H);  // may not divide the heads
  const Input q = d.input({n.B, n.T, n.H * n.D}), k = d.input({n.B, n.S, groups * n.D}),
              v = d.input({n.B, n.S, groups * n.E});
  const std::size_t heads = d.chance(32) ? 0 : n.H;
  return Step({q, k, v}, [=](const auto& x) {
    return n.with_options(
        [&](const auto& options) { return tg::multi_head_attention(x[0], x[1], x[2], heads, n.mask(), options); });
  });
}

inline Step rotary_embedding(Draw& d) {
  const std::size_t heads = 1 + d.below(3), width = d.chance(16) ? 3 : 2 * d.extent();
  Draw::require_quick(heads * width);
  const Input x = d.input({d.extent(), d.extent(), heads * width});
  const tg::RotaryOptions options{.base = d.number(1, 100), .first = d.below(1000)};
  return Step({x}, [=](const auto& v) { return tg::rotary_embedding(v[0], heads, options); });
}

inline Step masked_softmax(Draw& d) {
  const AttentionSizes n(d);
  const Input scores = d.input(without(d.chance(2) ? d.below(3) : 0, {n.B, n.H, n.T, n.S}));
  return Step({scores}, [=](const auto& v) { return tg::masked_softmax(v[0], n.mask()); });
}

}  // namespace fuzz::steps
