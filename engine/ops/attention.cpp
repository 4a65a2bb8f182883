#include "../kernels/attention.hpp"

#include <algorithm>
#include <cmath>

#include "../array/internal/error.hpp"
#include "../array/random.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::HeadLayout;
using detail::require;

// What the two forms of the operation share: heads that lie in memory as the layouts say.
template <class T>
Tensor<T> attend(const char* operation, const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                 const AttentionMask& mask, const AttentionOptions& options, std::size_t batch, std::size_t heads,
                 const HeadLayout& q_heads, const HeadLayout& k_heads, const HeadLayout& v_heads,
                 const HeadLayout& out_heads, const Shape& out_shape) {
  require(options.dropout >= 0 && options.dropout < 1, operation, "expected a dropout probability in [0, 1), given ",
          options.dropout);
  detail::MaskRows<T> masks(operation, mask, batch, heads, q_heads.rows, k_heads.rows);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q_heads.width)));
  const auto attention = make_pooled<const detail::Attention<T>>(
      detail::Attention<T>{batch, heads, q_heads, k_heads, v_heads, out_heads, static_cast<T>(scale), options.dropout,
                           options.dropout > 0 ? next_random_key() : 0, std::move(masks)});
  auto y = make_value<T>(out_shape), statistics = make_value<T>(Shape{batch, heads, q_heads.rows, 2});
  attention->forward(q.value().data(), k.value().data(), v.value().data(), y->data(), statistics->data());
  return record(operation, Value<T>(y), {q, k, v},
                [attention, q = q.shared_value(), k = k.shared_value(), v = v.shared_value(), y = Value<T>(y),
                 statistics = Value<T>(statistics)](const Array<T>& dy, auto& dx) {
                  Array<T> dq(q->shape()), dk(k->shape()), dv(v->shape());
                  attention->backward(q->data(), k->data(), v->data(), y->data(), statistics->data(), dy.data(),
                                      dq.data(), dk.data(), dv.data());
                  dx[0] += std::move(dq);
                  dx[1] += std::move(dk);
                  dx[2] += std::move(dv);
                });
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

  const std::size_t heads = axes == 4 ? sq[1] : 1, batch = axes > 2 ? sq[0] : 1;
  const auto layout = [heads](std::size_t rows, std::size_t width) {
    return HeadLayout{rows, width, heads * rows * width, rows * width, width};
  };
  const std::size_t queries = sq[axes - 2], keys = sk[axes - 2];
  Shape out_shape = sq;
  out_shape.back() = sv.back();
  return attend(operation, q, k, v, mask, options, batch, heads, layout(queries, sq.back()), layout(keys, sk.back()),
                layout(keys, sv.back()), layout(queries, sv.back()), out_shape);
}

template <class T>
Tensor<T> multi_head_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, std::size_t num_heads,
                               const AttentionMask& mask, const AttentionOptions& options) {
  const char* operation = "multi_head_attention";
  const Shape &sq = q.shape(), &sk = k.shape(), &sv = v.shape();
  const auto given = [&] { return to_string(sq) + ", " + to_string(sk) + " and " + to_string(sv); };
  require(sq.size() == 3 && sk.size() == 3 && sv.size() == 3, operation,
          "expected queries, keys and values of shape (B, T, H D), given ", given);
  require(sk[0] == sq[0] && sv[0] == sq[0], operation, "expected equal batches, given ", given);
  require(sk[2] == sq[2], operation, "expected keys as wide as the queries, given ", given);
  require(sv[1] == sk[1], operation, "expected as many values as keys, given ", given);
  require(num_heads > 0 && sq[2] % num_heads == 0 && sv[2] % num_heads == 0, operation,
          "expected widths that the number of heads divides, given ", num_heads, " heads and shapes ", given);

  const auto layout = [num_heads](std::size_t rows, std::size_t columns) {
    return HeadLayout{rows, columns / num_heads, rows * columns, columns / num_heads, columns};
  };
  return attend(operation, q, k, v, mask, options, sq[0], num_heads, layout(sq[1], sq[2]), layout(sk[1], sk[2]),
                layout(sv[1], sv[2]), layout(sq[1], sv[2]), Shape{sq[0], sq[1], sv[2]});
}

#define INSTANTIATE(T)                                                                                       \
  template Tensor<T> scaled_dot_product_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,      \
                                                  const AttentionMask&, const AttentionOptions&);            \
  template Tensor<T> multi_head_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, std::size_t, \
                                          const AttentionMask&, const AttentionOptions&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
