#include "../kernels/attention.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::AttentionLayout, detail::HeadLayout, detail::require;

// c a bᵀ for the rows of every head: (B, H, T, S). Each group of a's heads shares a head of b.
template <class T>
Array<T> head_products(const AttentionLayout& layout, const HeadLayout& a_layout, const Array<T>& a,
                       const HeadLayout& b_layout, const Array<T>& b, T c) {
  const std::size_t rows = a_layout.rows, columns = b_layout.rows;
  Array<T> products(Shape{layout.batch, layout.heads, rows, columns}, T(0));
  for (std::size_t i = 0; i < layout.batch * layout.heads; ++i) {
    const std::size_t batch = i / layout.heads, head = i % layout.heads;
    detail::gemm<T>(a_layout.at(a.data(), batch, head), b_layout.at(b.data(), batch, head / layout.heads_of_group).t(),
                    {products.data() + i * rows * columns, rows, columns}, c);
  }
  return products;
}

// Calls body(b, h, t, row) for each query's row of scores (B, H, T, S), which it may change, and returns them.
template <class T, class Body> Array<T> with_each_row(Array<T> scores, Body body) {
  const std::size_t heads = scores.shape()[1], queries = scores.shape()[2], keys = scores.shape()[3];
  const std::size_t rows = scores.shape()[0] * heads * queries;
  detail::parallel_for(rows, detail::chunks_for(scores.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      body(i / queries / heads, i / queries % heads, i % queries, scores.data() + i * keys);
  });
  return scores;
}

// Adds the weights before dropout, which the tiled kernel never stores as a whole, and the mask as 1 and 0.
template <class T>
void add_intermediates(Arguments<T>& arguments, const detail::Attention<T>& attention, const Tensor<T>& q,
                       const Tensor<T>& k, const Tensor<T>& v) {
  const Shape shape{attention.batch, attention.heads, attention.q.rows, attention.k.rows};
  arguments.add_intermediate("allowed", shape, [attention, shape] {
    return with_each_row(Array<T>(shape, T(0)), [&](std::size_t b, std::size_t h, std::size_t t, T* row) {
      const std::size_t keys = attention.k.rows, used = attention.masks.apply(b, h, t, 0, keys, row);
      for (std::size_t s = 0; s < keys; ++s) row[s] = s < used && row[s] > -std::numeric_limits<T>::infinity();
    });
  });
  std::function<Array<T>(const Array<T>&)> gradient;  // dP = dy vᵀ
  if (attention.dropout == 0)
    gradient = [attention, v = v.shared_value()](const Array<T>& dy) {
      return head_products<T>(attention, attention.out, dy, attention.v, *v, T(1));
    };
  const auto weights = [attention, q = q.shared_value(), k = k.shared_value()] {
    return with_each_row(
        head_products<T>(attention, attention.q, *q, attention.k, *k, attention.scale),
        [&](std::size_t b, std::size_t h, std::size_t t, T* row) { attention.masks.softmax(b, h, t, row); });
  };
  arguments.add_intermediate("weights", shape, weights, std::move(gradient));
}

// Shared by both forms of the operation, which differ in the memory layout of the heads.
template <class T>
Tensor<T> attend(const char* operation, const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                 const AttentionLayout& layout, const Shape& out_shape, const AttentionMask& mask,
                 const AttentionOptions& options) {
  require(options.dropout >= 0 && options.dropout < 1, operation, "expected a dropout probability in [0, 1), got ",
          options.dropout);
  const std::size_t queries = layout.q.rows, keys = layout.k.rows;
  detail::MaskRows<T> masks(operation, mask, layout.batch, layout.heads, queries, keys);
  auto y = detail::uninitialized<T>(operation, out_shape);
  auto statistics = detail::uninitialized<T>(operation, {layout.batch, layout.heads, queries, 2});
  const double scale = options.scale.value_or(layout.default_scale());
  const detail::Attention<T> attention{
      layout, static_cast<T>(scale), options.dropout,
      options.dropout > 0 ? detail::generator_or_default(options.generator).next_key() : 0, std::move(masks)};
  attention.forward(q.value().data(), k.value().data(), v.value().data(), y.data(), statistics.data());
  const char* formula = options.dropout > 0
                            ? "y = R v, R = dropout(P), P = softmax(S + mask), S = c q kᵀ; "
                              "dq = c dS k, dS = P ⊙ (dP − Σ dP ⊙ P), dP = dropout(dy vᵀ); dk = c dSᵀ q; dv = Rᵀ dy"
                            : "y = P v, P = softmax(S + mask), S = c q kᵀ; "
                              "dq = c dS k, dS = P ⊙ (dP − Σ dP ⊙ P), dP = dy vᵀ; dk = c dSᵀ q; dv = Pᵀ dy";
  return record(
      {operation, formula, scale}, std::move(y), {q, k, v},
      [attention, q = q.shared_value(), k = k.shared_value(), v = v.shared_value(), statistics = std::move(statistics)](
          const Array<T>& dy, auto& dx, const Array<T>& y) {
        Array<T> dq(q->shape()), dk(k->shape()), dv(v->shape());
        attention.backward(q->data(), k->data(), v->data(), y.data(), statistics.data(), dy.data(), dq.data(),
                           dk.data(), dv.data());
        dx[0] += std::move(dq);
        dx[1] += std::move(dk);
        dx[2] += std::move(dv);
      },
      [&](auto& arguments) {
        arguments.add("heads", layout.heads).add("scale", scale);
        if (options.dropout > 0) arguments.add("dropout", options.dropout);
        attention.masks.describe(arguments);
        add_intermediates(arguments, attention, q, k, v);
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
          "expected queries, keys and values of shape (B, H, T, D), (B, T, D) or (T, D), got ", given);
  require(std::equal(sq.begin(), sq.end() - 2, sk.begin()) && std::equal(sq.begin(), sq.end() - 2, sv.begin()),
          operation, "expected equal batch and heads, got ", given);
  require(sk.back() == sq.back(), operation, "expected keys as wide as the queries, got ", given);
  require(sv[axes - 2] == sk[axes - 2], operation, "expected as many values as keys, got ", given);

  Shape out = sq;
  out.back() = sv.back();
  const std::size_t heads = axes == 4 ? sq[1] : 1, batch = axes > 2 ? sq[0] : 1;
  const auto layout_of = [&](const Shape& s) {
    return HeadLayout::of_heads(heads, s[axes - 2], s[axes - 2], s.back());
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

BoolArray causal_mask(std::size_t rows, std::size_t columns) {
  auto mask = detail::uninitialized<bool>("causal_mask", {rows, columns});
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) mask.data()[i * columns + j] = j <= i;
  return mask;
}

BoolArray padding_mask(const IntArray& ids, std::int64_t padding_id) {
  return detail::map<bool>(ids, [padding_id](std::int64_t id) { return id != padding_id; });
}

#define INSTANTIATE(T)                                                                                       \
  template Tensor<T> scaled_dot_product_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,      \
                                                  const AttentionMask&, const AttentionOptions&);            \
  template Tensor<T> multi_head_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, std::size_t, \
                                          const AttentionMask&, const AttentionOptions&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
