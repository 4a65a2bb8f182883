#include <algorithm>
#include <cmath>

#include "../error.hpp"
#include "../kernels/gemm.hpp"
#include "../kernels/mask_rows.hpp"
#include "../kernels/rows.hpp"
#include "../ops.hpp"
#include "../random.hpp"
#include "../record.hpp"

namespace tapegrad {
namespace {

using detail::gemm;
using detail::Matrix;
using detail::require;

// How the heads of an operand lie in memory: each is a (rows, width) matrix with a leading dimension of its own.
struct Heads {
  std::size_t rows, width;
  std::size_t batch_step, head_step, row_step;  // in elements

  template <class T> Matrix<T> at(T* data, std::size_t b, std::size_t h) const {
    return {data + b * batch_step + h * head_step, rows, width, row_step};
  }
};

// What an attention is computed over.
struct Problem {
  std::size_t batch, heads;
  Heads q, k, v, out;
  Shape out_shape;
  double scale;
  double dropout;
  std::uint64_t dropout_key;

  // Where the attention weights (T, S) of head h of batch entry b begin among those of all heads, (B, H, T, S).
  std::size_t weights_at(std::size_t b, std::size_t h) const { return (b * heads + h) * q.rows * k.rows; }

  // Sets weights to 0 with the dropout's probability and scales up the others, alike forward and backward.
  template <class T> void drop(T* weights, std::size_t first) const {
    if (dropout == 0) return;
    const T kept = T(1 / (1 - dropout));
    for (std::size_t i = 0; i < q.rows * k.rows; ++i)
      weights[i] *= random_uniform(dropout_key, first + i) < dropout ? T(0) : kept;
  }
};

Problem problem(const char* operation, std::size_t batch, std::size_t heads, const Heads& q, const Heads& k,
                const Heads& v, const Heads& out, Shape out_shape, const AttentionOptions& options) {
  require(options.dropout >= 0 && options.dropout < 1, operation, "expected a dropout probability in [0, 1), given ",
          options.dropout);
  return {batch,
          heads,
          q,
          k,
          v,
          out,
          std::move(out_shape),
          options.scale.value_or(1 / std::sqrt(static_cast<double>(q.width))),
          options.dropout,
          options.dropout > 0 ? next_random_key() : 0};
}

// For every head: S = scale Q K^T, P = softmax(S) under the mask, O = P' V, where P' is P after dropout.
template <class T>
Tensor<T> attend(const char* operation, const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                 const AttentionMask& mask, const Problem& p) {
  const detail::MaskRows<T> masks(operation, mask, p.batch, p.heads, p.q.rows, p.k.rows);
  const std::size_t queries = p.q.rows, keys = p.k.rows;
  const T scale = static_cast<T>(p.scale);
  auto weights = make_value<T>(Shape{p.batch, p.heads, queries, keys});  // P
  Array<T> y(p.out_shape), dropped(Shape{queries, keys});
  for (std::size_t b = 0; b < p.batch; ++b)
    for (std::size_t h = 0; h < p.heads; ++h) {
      T* P = weights->data() + p.weights_at(b, h);
      gemm<T>(p.q.at(q.value().data(), b, h), p.k.at(k.value().data(), b, h).t(), {P, queries, keys}, scale);
      for (std::size_t t = 0; t < queries; ++t) masks.softmax(b, h, t, P + t * keys);
      std::copy_n(P, queries * keys, dropped.data());
      p.drop(dropped.data(), p.weights_at(b, h));
      gemm<T>({dropped.data(), queries, keys}, p.v.at(v.value().data(), b, h), p.out.at(y.data(), b, h));
    }

  return record(operation, std::move(y), {q, k, v},
                [p, scale, weights = Value<T>(weights), q = q.saved(), k = k.saved(), v = v.saved()](const Array<T>& dy,
                                                                                                     auto& dx) {
                  const std::size_t queries = p.q.rows, keys = p.k.rows;
                  Array<T> dq(q->shape()), dk(k->shape()), dv(v->shape());
                  Array<T> dropped(Shape{queries, keys}), ds(Shape{queries, keys});
                  for (std::size_t b = 0; b < p.batch; ++b)
                    for (std::size_t h = 0; h < p.heads; ++h) {
                      const T* P = weights->data() + p.weights_at(b, h);
                      const Matrix<const T> dO = p.out.at(dy.data(), b, h);
                      std::copy_n(P, queries * keys, dropped.data());
                      p.drop(dropped.data(), p.weights_at(b, h));
                      // dV = P'^T dO, dP' = dO V^T, dP = dP' with the same weights dropped
                      gemm<T>(Matrix<const T>(dropped.data(), queries, keys).t(), dO, p.v.at(dv.data(), b, h));
                      gemm<T>(dO, p.v.at(v->data(), b, h).t(), {ds.data(), queries, keys});
                      p.drop(ds.data(), p.weights_at(b, h));
                      // dS = P (dP - rowsum(dP P)); hidden weights are 0 and pass nothing
                      for (std::size_t t = 0; t < queries; ++t) {
                        T* row = ds.data() + t * keys;
                        detail::row_softmax_backward(P + t * keys, row, row, keys);
                      }
                      // dQ = scale dS K, dK = scale dS^T Q
                      const Matrix<const T> dS(ds.data(), queries, keys);
                      gemm<T>(dS, p.k.at(k->data(), b, h), p.q.at(dq.data(), b, h), scale);
                      gemm<T>(dS.t(), p.q.at(q->data(), b, h), p.k.at(dk.data(), b, h), scale);
                    }
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
          "expected queries, keys and values of shape (B, H, T, D), (B, T, D) or (T, D), given ", given());
  require(std::equal(sq.begin(), sq.end() - 2, sk.begin()) && std::equal(sq.begin(), sq.end() - 2, sv.begin()),
          operation, "expected equal batch and heads, given ", given());
  require(sk.back() == sq.back(), operation, "expected keys as wide as the queries, given ", given());
  require(sv[axes - 2] == sk[axes - 2], operation, "expected as many values as keys, given ", given());

  const std::size_t heads = axes == 4 ? sq[1] : 1, batch = axes > 2 ? sq[0] : 1;
  const auto layout = [heads](std::size_t rows, std::size_t width) {
    return Heads{rows, width, heads * rows * width, rows * width, width};
  };
  const std::size_t queries = sq[axes - 2], keys = sk[axes - 2];
  Shape out_shape = sq;
  out_shape.back() = sv.back();
  return attend(operation, q, k, v, mask,
                problem(operation, batch, heads, layout(queries, sq.back()), layout(keys, sk.back()),
                        layout(keys, sv.back()), layout(queries, sv.back()), out_shape, options));
}

template <class T>
Tensor<T> multi_head_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, std::size_t num_heads,
                               const AttentionMask& mask, const AttentionOptions& options) {
  const char* operation = "multi_head_attention";
  const Shape &sq = q.shape(), &sk = k.shape(), &sv = v.shape();
  const auto given = [&] { return to_string(sq) + ", " + to_string(sk) + " and " + to_string(sv); };
  require(sq.size() == 3 && sk.size() == 3 && sv.size() == 3, operation,
          "expected queries, keys and values of shape (B, T, H D), given ", given());
  require(sk[0] == sq[0] && sv[0] == sq[0], operation, "expected equal batches, given ", given());
  require(sk[2] == sq[2], operation, "expected keys as wide as the queries, given ", given());
  require(sv[1] == sk[1], operation, "expected as many values as keys, given ", given());
  require(num_heads > 0 && sq[2] % num_heads == 0 && sv[2] % num_heads == 0, operation,
          "expected widths that the number of heads divides, given ", num_heads, " heads and shapes ", given());

  const auto layout = [num_heads](std::size_t rows, std::size_t columns) {
    return Heads{rows, columns / num_heads, rows * columns, columns / num_heads, columns};
  };
  return attend(operation, q, k, v, mask,
                problem(operation, sq[0], num_heads, layout(sq[1], sq[2]), layout(sk[1], sk[2]), layout(sv[1], sv[2]),
                        layout(sq[1], sv[2]), Shape{sq[0], sq[1], sv[2]}, options));
}

#define INSTANTIATE(T)                                                                                       \
  template Tensor<T> scaled_dot_product_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&,      \
                                                  const AttentionMask&, const AttentionOptions&);            \
  template Tensor<T> multi_head_attention(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, std::size_t, \
                                          const AttentionMask&, const AttentionOptions&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
