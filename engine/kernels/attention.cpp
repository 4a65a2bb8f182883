#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../array.hpp"
#include "../parallel.hpp"
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

template <class T> Matrix<const T> columns_between(Matrix<const T> m, std::size_t first, std::size_t last) {
  return m.t().rows_between(first, last).t();
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
// others are hidden. All rows are masked before any is read: a vector waits for what has just been written in smaller
// pieces.
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

// The softmax is made as tiles of keys come in: with m the largest score so far and l the sum of exp(S - m), a larger
// score m' in the next tile scales what has been summed, l and O, down by exp(m - m').
template <class T>
void Attention<T>::forward(const T* q_data, const T* k_data, const T* v_data, T* out_data, T* statistics) const {
  constexpr T inf = std::numeric_limits<T>::infinity();
  const VectorLoops<T>& loops = vector_loops<T>();
  for_each_head([&](std::size_t b, std::size_t h, const Scratch& scratch) {
    const Matrix<const T> Q = q.at(q_data, b, h), K = k.at(k_data, b, h), V = v.at(v_data, b, h);
    const Matrix<const T> Kt = transpose(K, scratch.keys);
    T* const P = scratch.P;
    const Matrix<T> O = out.at(out_data, b, h);
    const auto scale_row = [&](std::size_t t, T factor) { loops.scale(O.row(t), O.columns, factor); };
    for_each_strip(b, h, [&](const Strip& strip) {
      T m[kMostQueries], l[kMostQueries];
      std::size_t seen[kMostQueries];
      for (std::size_t t = strip.t0; t < strip.t1; ++t) {
        m[t - strip.t0] = -inf;
        l[t - strip.t0] = 0;
        if (strip.visible == 0) std::fill_n(O.row(t), O.columns, T(0));
      }
      for_each_tile(strip, [&](const Tile& tile) {
        masked_scores(tile, Q, Kt, P, seen);
        for (std::size_t i = 0; i < tile.queries(); ++i) {
          T* scores = P + i * tile.keys();
          const T larger = std::max(m[i], loops.max(scores, seen[i]));
          const T shift = larger == -inf ? T(0) : larger;  // nothing to attend to yet: exp(-inf - 0) = 0
          const T shrink = tile.s0 > 0 ? std::exp(m[i] - shift) : T(0);
          l[i] = l[i] * shrink + loops.exp_sum(scores, scores, seen[i], shift);
          std::fill(scores + seen[i], scores + tile.keys(), T(0));
          m[i] = larger;
          if (tile.s0 > 0 && shrink != 1) scale_row(tile.t0 + i, shrink);
        }
        drop(tile, P);
        gemm<T>(tile.matrix(P), V.rows_between(tile.s0, tile.s1), O.rows_between(tile.t0, tile.t1), 1, tile.s0 > 0);
      });
      for (std::size_t t = strip.t0; t < strip.t1; ++t) {
        const std::size_t i = t - strip.t0;
        T* const saved = statistics + 2 * ((b * heads + h) * q.rows + t);
        saved[0] = l[i] != 0 ? m[i] : 0;
        saved[1] = l[i] != 0 ? l[i] : inf;
        scale_row(t, 1 / saved[1]);
      }
    });
  });
}

// With P = exp(S - m) / l made again, and P' = P after dropout:
//   dV = P'^T dO, dP' = dO V^T, dP = dP' with the same weights dropped
//   dS = P (dP - rowsum(dP P)), where rowsum(dP P) = rowsum(dO O)
//   dQ = scale dS K, dK = scale dS^T Q
template <class T>
void Attention<T>::backward(const T* q_data, const T* k_data, const T* v_data, const T* out_data, const T* statistics,
                            const T* dout_data, T* dq_data, T* dk_data, T* dv_data) const {
  const VectorLoops<T>& loops = vector_loops<T>();
  for_each_head([&](std::size_t b, std::size_t h, const Scratch& scratch) {
    const Matrix<const T> Q = q.at(q_data, b, h), K = k.at(k_data, b, h), V = v.at(v_data, b, h),
                          O = out.at(out_data, b, h), dO = out.at(dout_data, b, h);
    const Matrix<T> dQ = q.at(dq_data, b, h), dK = k.at(dk_data, b, h), dV = v.at(dv_data, b, h);
    const Matrix<const T> Kt = transpose(K, scratch.keys), Vt = transpose(V, scratch.values);
    T *const P = scratch.P, *const dS = scratch.dS, *const dropped = dropout > 0 ? scratch.dropped : P;
    std::size_t reached = 0;  // the keys before it have received: their rows of dK and dV hold sums
    const auto receive_zeros_up_to = [&](std::size_t end) {
      for (; reached < end; ++reached) {
        std::fill_n(dK.row(reached), dK.columns, T(0));
        std::fill_n(dV.row(reached), dV.columns, T(0));
      }
    };
    for_each_strip(b, h, [&](const Strip& strip) {
      T dot[kMostQueries];  // rowsum(dO O)
      std::size_t seen[kMostQueries];
      for (std::size_t t = strip.t0; t < strip.t1; ++t) {
        dot[t - strip.t0] = loops.dot(dO.row(t), O.row(t), O.columns);
        if (strip.visible == 0) std::fill_n(dQ.row(t), dQ.columns, T(0));
      }
      for_each_tile(strip, [&](const Tile& tile) {
        const std::size_t keys = tile.keys(), size = tile.queries() * keys;
        const Matrix<const T> dO_strip = dO.rows_between(tile.t0, tile.t1), Q_strip = Q.rows_between(tile.t0, tile.t1),
                              K_tile = K.rows_between(tile.s0, tile.s1),
                              Vt_tile = columns_between(Vt, tile.s0, tile.s1);
        masked_scores(tile, Q, Kt, P, seen);
        for (std::size_t i = 0; i < tile.queries(); ++i) {
          const T* const saved = statistics + 2 * ((b * heads + h) * q.rows + tile.t0 + i);
          T* const row = P + i * keys;
          loops.exp_scaled(row, row, seen[i], saved[0], 1 / saved[1]);
          std::fill(row + seen[i], row + keys, T(0));
        }
        if (dropout > 0) std::copy_n(P, size, dropped);
        drop(tile, dropped);
        const bool first = tile.s0 == reached;  // to give these keys anything
        if (first)
          reached = tile.s1;
        else
          receive_zeros_up_to(tile.s1);
        gemm<T>(Matrix<const T>(tile.matrix(dropped)).t(), dO_strip, dV.rows_between(tile.s0, tile.s1), 1, !first);
        gemm<T>(dO_strip, Vt_tile, tile.matrix(dS));
        drop(tile, dS);
        for (std::size_t i = 0; i < tile.queries(); ++i) {
          T* const row = dS + i * keys;
          loops.softmax_backward(P + i * keys, row, row, seen[i], dot[i]);
          std::fill(row + seen[i], row + keys, T(0));
        }
        gemm<T>(tile.matrix(dS), K_tile, dQ.rows_between(tile.t0, tile.t1), scale, tile.s0 > 0);
        gemm<T>(Matrix<const T>(tile.matrix(dS)).t(), Q_strip, dK.rows_between(tile.s0, tile.s1), scale, !first);
      });
    });
    receive_zeros_up_to(k.rows);
  });
}

template struct Attention<float>;
template struct Attention<double>;

}  // namespace tapegrad::detail
