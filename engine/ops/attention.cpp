#include "../kernels/attention.hpp"

#include <algorithm>
#include <cmath>

#include "../array/internal/layout.hpp"
#include "../kernels/strided.hpp"
#include "../tape/internal/recording.hpp"
#include "../tape/record.hpp"
#include "../tape/tape.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::AttentionLayout;
using detail::HeadLayout;
using detail::require;

// For readers of the tape: the weights, which the tiles never hold at once, before any dropout, and where the mask lets
// queries attend, 1 or 0; (B, H, T, S).
template <class T>
void keep_weights(detail::Recording<T>& recording, const Tensor<T>& y, const Tensor<T>& q, const Tensor<T>& k,
                  const AttentionLayout& layout, const AttentionMask& mask, T scale, double dropout) {
  const NoGrad pause;
  const std::size_t queries = layout.q.rows, keys = layout.k.rows;
  Array<T> scores(Shape{layout.batch, layout.heads, queries, keys}, T(0));
  const Array<T> unmasked = masked_softmax(Tensor<T>(scores), mask).value();
  recording.keep_beside(y, "allowed", detail::map<T>(unmasked, [](T weight) { return T(weight > 0); }));
  for (std::size_t b = 0; b < layout.batch; ++b)
    for (std::size_t h = 0; h < layout.heads; ++h)
      detail::gemm<T>(layout.q.at(q.value().data(), b, h),
                      layout.k.at(k.value().data(), b, h / layout.heads_of_group).t(),
                      {scores.data() + (b * layout.heads + h) * queries * keys, queries, keys}, scale);
  recording.keep_beside(y, "weights", masked_softmax(Tensor<T>(std::move(scores)), mask).value());
  recording.keep_beside(y, "dropout", Array<T>(Shape{}, static_cast<T>(dropout)));
}

// What the two forms of the operation share, whose heads lie in memory as the layout says.
template <class T>
Tensor<T> attend(const char* operation, const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                 const AttentionLayout& layout, const Shape& out_shape, const AttentionMask& mask,
                 const AttentionOptions& options) {
  require(options.dropout >= 0 && options.dropout < 1, operation, "expected a dropout probability in [0, 1), given ",
          options.dropout);
  const std::size_t queries = layout.q.rows, keys = layout.k.rows;
  detail::MaskRows<T> masks(operation, mask, layout.batch, layout.heads, queries, keys);
  auto y = make_value<T>(detail::uninitialized<T>(operation, out_shape));
  auto statistics = make_value<T>(detail::uninitialized<T>(operation, {layout.batch, layout.heads, queries, 2}));
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(layout.q.width)));
  detail::Attention<T> attention{layout, static_cast<T>(scale), options.dropout,
                                 options.dropout > 0 ? detail::generator_or_default(options.generator).next_key() : 0,
                                 std::move(masks)};
  attention.forward(q.value().data(), k.value().data(), v.value().data(), y->data(), statistics->data());
  const char* formula = options.dropout > 0
                            ? "y = R v, R = dropout(P), P = softmax(S + mask), S = c q kᵀ; "
                              "dq = c dS k, dS = P ⊙ (dP − Σ dP ⊙ P), dP = dropout(dy vᵀ); dk = c dSᵀ q; dv = Rᵀ dy"
                            : "y = P v, P = softmax(S + mask), S = c q kᵀ; "
                              "dq = c dS k, dS = P ⊙ (dP − Σ dP ⊙ P), dP = dy vᵀ; dk = c dSᵀ q; dv = Pᵀ dy";
  Tensor<T> out =
      record({operation, formula, scale}, Value<T>(y), {q, k, v},
             [attention = std::move(attention), q = q.shared_value(), k = k.shared_value(), v = v.shared_value(),
              y = Value<T>(y), statistics = Value<T>(statistics)](const Array<T>& dy, auto& dx) {
               Array<T> dq(q->shape()), dk(k->shape()), dv(v->shape());
               attention.backward(q->data(), k->data(), v->data(), y->data(), statistics->data(), dy.data(), dq.data(),
                                  dk.data(), dv.data());
               dx[0] += std::move(dq);
               dx[1] += std::move(dk);
               dx[2] += std::move(dv);
             });
  if (detail::Recordings* const tape = detail::TapeScope::current(); out.requires_grad() && tape->options().keep_values)
    keep_weights(tape->of<T>(), out, q, k, layout, mask, static_cast<T>(scale), options.dropout);
  return out;
}

}  // namespace

template <class T>
Tensor<T> scaled_dot_product_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                       const AttentionMask& mask, const AttentionOptions& options) {
  const char* operation = "scaled_dot_product_attention";
  const Shape &sq = q.shape(), &sk = k.shape(), &sv = v.shape();
  const auto given = [&] { return to_string(sq) + ", " + to_string(sk) + " and " + to_string(sv); };
  const std::size_t axes = sq.size();
  require(axes >= 2 && axes <= 4 && sk.size() == axes && sv.size() == axes, operation,
          "expected queries, keys and values of shape (B, H, T, D), (B, T, D) or (T, D), given ", given);
  require(std::equal(sq.begin(), sq.end() - 2, sk.begin()) && std::equal(sq.begin(), sq.end() - 2, sv.begin()),
          operation, "expected equal batch and heads, given ", given);
  require(sk.back() == sq.back(), operation, "expected keys as wide as the queries, given ", given);
  require(sv[axes - 2] == sk[axes - 2], operation, "expected as many values as keys, given ", given);

  Shape out = sq;
  out.back() = sv.back();
  const std::size_t heads = axes == 4 ? sq[1] : 1, batch = axes > 2 ? sq[0] : 1;
  const auto layout_of = [heads](const Shape& shape) {
    const std::size_t rows = shape[shape.size() - 2];
    return HeadLayout::of_heads(heads, rows, rows, shape.back());
  };
  const AttentionLayout layout{batch, heads, 1, layout_of(sq), layout_of(sk), layout_of(sv), layout_of(out)};
  return attend(operation, q, k, v, layout, out, mask, options);
}

template <class T>
Tensor<T> multi_head_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, std::size_t num_heads,
                               const AttentionMask& mask, const AttentionOptions& options) {
  const char* operation = "multi_head_attention";
  const AttentionLayout layout = detail::layout_of_columns(operation, q.shape(), k.shape(), v.shape(), num_heads);
  const Shape out{layout.batch, layout.q.rows, num_heads * layout.v.width};
  return attend(operation, q, k, v, layout, out, mask, options);
}

#define INSTANTIATE(T)                                                                                       \
  template Tensor<T> scaled_dot_product_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,      \
                                                  const AttentionMask&, const AttentionOptions&);            \
  template Tensor<T> multi_head_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, std::size_t, \
                                          const AttentionMask&, const AttentionOptions&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
