#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../array/array.hpp"
#include "../array/internal/parallel.hpp"
#include "vector_loops.hpp"

namespace tapegrad::detail {
namespace {

// A tile of scores and its two operands fit in a processor's second-level cache. Short strips of queries let a causal
// mask spare more; in a long sequence it gains more to bring the keys to the processor less often.
constexpr std::size_t kKeys = 256, kMostQueries = 128;
std::size_t strip_of(std::size_t queries) { return queries > 1024 ? kMostQueries : std::min<std::size_t>(queries, 64); }

// Up to so many elements a head's keys and values are copied to be multiplied with as transposes: what OpenBLAS does
// for small ones itself takes three times as long as the product, and more when several threads do it.
constexpr std::size_t kCopied = std::size_t{1} << 14;
std::size_t copy_size(std::size_t rows, std::size_t columns) { return rows * columns <= kCopied ? rows * columns : 0; }

template <class T> Matrix<const T> transpose(Matrix<const T> m, T* room) {
  if (copy_size(m.rows, m.columns) == 0) return m.t();
  for (std::size_t r = 0; r < m.rows; ++r)
    for (std::size_t c = 0; c < m.columns; ++c) room[c * m.rows + r] = m.row(r)[c];
  return {room, m.columns, m.rows};
}

template <class T> Matrix<const T> constant(Matrix<T> m) { return m; }

template <class T> Matrix<const T> columns_between(Matrix<const T> m, std::size_t first, std::size_t last) {
  return m.t().rows_between(first, last).t();
}

template <class T> void fill_zeros(Matrix<T> m, std::size_t first_row, std::size_t last_row) {
  for (std::size_t r = first_row; r < last_row; ++r) std::fill_n(m.row(r), m.columns, T(0));
}

}  // namespace

// Queries t0, ..., t1 - 1 of head h of batch entry b; the mask hides all keys from `visible` on from each of them.
template <class T> struct Attention<T>::Strip { std::size_t b, h, t0, t1, visible; };

// A strip's queries against the keys s0, ..., s1 - 1.
template <class T> struct Attention<T>::Tile : Strip {
  std::size_t s0, s1;

  std::size_t queries() const { return this->t1 - this->t0; }
  std::size_t keys() const { return s1 - s0; }
  Matrix<T> matrix(T* data) const { return {data, queries(), keys()}; }
};

// Memory to work in: three tiles, and the copies of K^T and V^T.
template <class T> struct Attention<T>::Scratch { T *P, *dS, *dropped, *keys, *values; };

// head(b, h, scratch) for every head, on several threads.
template <class T> template <class Head> void Attention<T>::for_each_head(Head head) const {
  // A score costs the softmax about as much as 64 multiplications.
  const std::size_t scores = batch * heads * q.rows * k.rows;
  const std::size_t chunks = std::min(chunks_for(scores * ((q.width + v.width) / 16 + 4)), batch * heads);
  const std::size_t tile = strip_of(q.rows) * std::min(kKeys, k.rows);
  const std::size_t keys = copy_size(k.rows, k.width), values = copy_size(v.rows, v.width);
  const std::size_t room = 3 * tile + keys + values;
  Array<T> scratch(Shape{chunks, room});  // taken by this thread: the pool's threads would each ask the system once
  parallel_for(batch * heads, chunks, [&](std::size_t begin, std::size_t end, std::size_t chunk) {
    T* const data = scratch.data() + chunk * room;
    for (std::size_t i = begin; i < end; ++i)
      head(i / heads, i % heads, Scratch{data, data + tile, data + 2 * tile, data + 3 * tile, data + 3 * tile + keys});
  });
}

template <class T>
template <class Body>
void Attention<T>::for_each_strip(std::size_t b, std::size_t h, Body body) const {
  const std::size_t queries = strip_of(q.rows);
  for (std::size_t t0 = 0; t0 < q.rows; t0 += queries) {
    Strip strip{b, h, t0, std::min(t0 + queries, q.rows), 0};
    for (std::size_t t = t0; t < strip.t1; ++t) strip.visible = std::max(strip.visible, masks.visible(b, h, t));
    body(strip);
  }
}

template <class T> template <class Body> void Attention<T>::for_each_tile(const Strip& strip, Body body) const {
  for (std::size_t s0 = 0; s0 < strip.visible; s0 += kKeys) body(Tile{strip, s0, std::min(s0 + kKeys, strip.visible)});
}

// S = scale Q K^T within the tile, under the mask. Of query t0 + i the first seen[i] scores in the tile count: the
// others are hidden. All rows are masked before any is read: a vector loaded from elements that have just been
// stored one by one is a store-forwarding stall.
template <class T>
void Attention<T>::masked_scores(const Tile& tile, Matrix<const T> Q, Matrix<const T> Kt, T* S,
                                 std::size_t* seen) const {
  gemm<T>(Q.rows_between(tile.t0, tile.t1), columns_between(Kt, tile.s0, tile.s1), tile.matrix(S), scale);
  for (std::size_t i = 0; i < tile.queries(); ++i)
    seen[i] = masks.apply(tile.b, tile.h, tile.t0 + i, tile.s0, tile.keys(), S + i * tile.keys());
}

// Sets weights to 0 with the dropout's probability and scales up the others.
template <class T> void Attention<T>::drop(const Tile& tile, T* weights) const {
  if (dropout == 0) return;
  for (std::size_t t = tile.t0; t < tile.t1; ++t, weights += tile.keys()) {
    const std::size_t row = (tile.b * heads + tile.h) * q.rows + t;
    vector_loops<T>().dropout(weights, weights, tile.keys(), dropout, dropout_key, row * k.rows + tile.s0);
  }
}

// What the forward pass of a head works on.
template <class T> struct Attention<T>::ForwardHead {
  Matrix<const T> Q, Kt, V;
  Matrix<T> O;
  T* statistics;  // (T, 2)
  T* P;           // a tile
};

template <class T>
void Attention<T>::forward(const T* q_data, const T* k_data, const T* v_data, T* out_data, T* statistics) const {
  for_each_head([&](std::size_t b, std::size_t h, const Scratch& scratch) {
    const ForwardHead head{q.at(q_data, b, h),     transpose(k.at(k_data, b, h), scratch.keys), v.at(v_data, b, h),
                           out.at(out_data, b, h), statistics + 2 * (b * heads + h) * q.rows,   scratch.P};
    for_each_strip(b, h, [&](const Strip& strip) { forward_strip(strip, head); });
  });
}

// The online softmax, tile of keys by tile: with m the largest score so far and l the sum of exp(S - m), a larger
// score m' in the next tile rescales the accumulators l and O by exp(m - m').
template <class T> void Attention<T>::forward_strip(const Strip& strip, const ForwardHead& head) const {
  constexpr T inf = std::numeric_limits<T>::infinity();
  const VectorLoops<T>& loops = vector_loops<T>();
  const Matrix<T> O = head.O.rows_between(strip.t0, strip.t1);
  std::size_t seen[kMostQueries];
  T m[kMostQueries], l[kMostQueries];
  std::fill_n(m, O.rows, -inf);
  std::fill_n(l, O.rows, T(0));
  if (strip.visible == 0) fill_zeros(O, 0, O.rows);

  for_each_tile(strip, [&](const Tile& tile) {
    masked_scores(tile, head.Q, head.Kt, head.P, seen);
    for (std::size_t i = 0; i < O.rows; ++i) {
      T* const scores = tile.matrix(head.P).row(i);
      const T larger = std::max(m[i], loops.max(scores, seen[i]));
      const T shift = larger == -inf ? T(0) : larger;  // nothing to attend to yet: exp(-inf - 0) = 0
      const T shrink = tile.s0 > 0 ? std::exp(m[i] - shift) : T(0);
      l[i] = l[i] * shrink + loops.exp_sum(scores, scores, seen[i], shift);
      std::fill(scores + seen[i], scores + tile.keys(), T(0));
      m[i] = larger;
      if (tile.s0 > 0 && shrink != 1) loops.scale(O.row(i), O.columns, shrink);
    }
    drop(tile, head.P);
    gemm<T>(tile.matrix(head.P), head.V.rows_between(tile.s0, tile.s1), O, 1, tile.s0 > 0);
  });

  for (std::size_t i = 0; i < O.rows; ++i) {
    T* const saved = head.statistics + 2 * (strip.t0 + i);
    saved[0] = l[i] != 0 ? m[i] : 0;
    saved[1] = l[i] != 0 ? l[i] : inf;
    loops.scale(O.row(i), O.columns, 1 / saved[1]);
  }
}

// What the backward pass of a head works on.
template <class T> struct Attention<T>::BackwardHead {
  Matrix<const T> Q, K, O, dO, Kt, Vt;
  Matrix<T> dQ, dK, dV;
  const T* statistics;  // (T, 2)
  Scratch scratch;
  std::size_t reached = 0;  // the keys before it have received: their rows of dK and dV hold sums

  void fill_up_to(std::size_t key) {
    if (key <= reached) return;
    fill_zeros(dK, reached, key);
    fill_zeros(dV, reached, key);
    reached = key;
  }
};

template <class T>
void Attention<T>::backward(const T* q_data, const T* k_data, const T* v_data, const T* out_data, const T* statistics,
                            const T* dout_data, T* dq_data, T* dk_data, T* dv_data) const {
  for_each_head([&](std::size_t b, std::size_t h, const Scratch& scratch) {
    BackwardHead head{q.at(q_data, b, h),
                      k.at(k_data, b, h),
                      out.at(out_data, b, h),
                      out.at(dout_data, b, h),
                      transpose(k.at(k_data, b, h), scratch.keys),
                      transpose(v.at(v_data, b, h), scratch.values),
                      q.at(dq_data, b, h),
                      k.at(dk_data, b, h),
                      v.at(dv_data, b, h),
                      statistics + 2 * (b * heads + h) * q.rows,
                      scratch};
    for_each_strip(b, h, [&](const Strip& strip) {
      T dot[kMostQueries];  // rowsum(dO O)
      for (std::size_t t = strip.t0; t < strip.t1; ++t)
        dot[t - strip.t0] = vector_loops<T>().dot(head.dO.row(t), head.O.row(t), head.O.columns);
      if (strip.visible == 0) fill_zeros(head.dQ, strip.t0, strip.t1);
      for_each_tile(strip, [&](const Tile& tile) { backward_tile(tile, dot, head); });
    });
    head.fill_up_to(k.rows);
  });
}

// With P = exp(S - m) / l recomputed, and P' = P after dropout:
//   dV = P'^T dO, dP' = dO V^T, dP = dP' with the same weights dropped
//   dS = P (dP - rowsum(dP P)), where rowsum(dP P) = rowsum(dO O)
//   dQ = scale dS K, dK = scale dS^T Q
template <class T> void Attention<T>::backward_tile(const Tile& tile, const T* dot, BackwardHead& head) const {
  const VectorLoops<T>& loops = vector_loops<T>();
  const Matrix<T> P = tile.matrix(head.scratch.P), dS = tile.matrix(head.scratch.dS),
                  dropped = dropout > 0 ? tile.matrix(head.scratch.dropped) : P;
  const Matrix<const T> Q = head.Q.rows_between(tile.t0, tile.t1), dO = head.dO.rows_between(tile.t0, tile.t1),
                        K = head.K.rows_between(tile.s0, tile.s1), Vt = columns_between(head.Vt, tile.s0, tile.s1);
  std::size_t seen[kMostQueries];
  masked_scores(tile, head.Q, head.Kt, P.data, seen);
  for (std::size_t i = 0; i < P.rows; ++i) {
    const T* const saved = head.statistics + 2 * (tile.t0 + i);
    loops.exp_scaled(P.row(i), P.row(i), seen[i], saved[0], 1 / saved[1]);
    std::fill(P.row(i) + seen[i], P.row(i) + P.columns, T(0));
  }
  if (dropout > 0) std::copy_n(P.data, P.rows * P.columns, dropped.data);
  drop(tile, dropped.data);

  const bool first = tile.s0 == head.reached;  // to give these keys anything
  if (first)
    head.reached = tile.s1;
  else
    head.fill_up_to(tile.s1);
  gemm<T>(constant(dropped).t(), dO, head.dV.rows_between(tile.s0, tile.s1), 1, !first);
  gemm<T>(dO, Vt, dS);
  drop(tile, dS.data);
  for (std::size_t i = 0; i < dS.rows; ++i) {
    loops.softmax_backward(P.row(i), dS.row(i), dS.row(i), seen[i], dot[i]);
    std::fill(dS.row(i) + seen[i], dS.row(i) + dS.columns, T(0));
  }
  gemm<T>(dS, K, head.dQ.rows_between(tile.t0, tile.t1), scale, tile.s0 > 0);
  gemm<T>(constant(dS).t(), Q, head.dK.rows_between(tile.s0, tile.s1), scale, !first);
}

template struct Attention<float>;
template struct Attention<double>;

}  // namespace tapegrad::detail
