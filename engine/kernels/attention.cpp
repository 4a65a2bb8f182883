#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../array/internal/error.hpp"
#include "../array/internal/layout.hpp"
#include "../array/internal/parallel.hpp"
#include "vector_loops.hpp"

namespace tapegrad::detail {
namespace {

// A tile of scores and its two operands fit in the second-level cache. Short strips of queries skip more of a causal
// mask; long sequences gain more by loading the keys less often.
constexpr std::size_t kKeys = 256, kMaxQueries = 128, kMinQueries = 32;

template <class T> void fill_zeros(Matrix<T> m, std::size_t first_row, std::size_t last_row) {
  for (std::size_t r = first_row; r < last_row; ++r) std::fill_n(m.row(r), m.columns, T(0));
}

// Queries t0, ..., t1 - 1 of head h of batch entry b. Keys from `visible` on are masked for all of them.
struct Strip {
  std::size_t b, h, t0, t1, visible;
};

// A strip's queries against the keys s0, ..., s1 - 1.
struct Tile : Strip {
  std::size_t s0, s1;

  std::size_t queries() const { return t1 - t0; }
  std::size_t keys() const { return s1 - s0; }
  template <class T> Matrix<T> matrix(T* data) const { return {data, queries(), keys()}; }
};

// Strips first, ..., last - 1 of a group's heads, one head after the other. Few groups have several parts each.
struct Part {
  std::size_t b, g, number, first, last;
};

template <class T> struct Scratch { T *P, *dS, *dropped; };  // working memory: three tiles

// What both passes share. The division of work among threads depends on the shapes only, and so do the results.
template <class T> struct Pass {
  const Attention<T>& a;
  std::size_t strip, strips;          // queries of a strip, and strips of a head
  std::size_t strips_of_part, parts;  // of a group
  std::size_t chunks;                 // of the loop over the parts of all groups

  explicit Pass(const Attention<T>& attention) : a(attention) {
    // A score costs the softmax about 64 multiplications. For few queries, reading the keys dominates.
    constexpr std::size_t kMaxParts = 8;  // of all groups: each has its own sums of the gradients of keys and values
    const auto ratio = [](std::size_t above, std::size_t below) { return (above + below - 1) / below; };  // rounded up
    const std::size_t queries = a.q.rows, heads = std::max<std::size_t>(a.batch * a.heads, 1);
    const std::size_t groups = ratio(heads, a.heads_of_group), widths = a.q.width + a.v.width;
    const std::size_t wanted_chunks = chunks_for(heads * a.k.rows * (queries * (widths / 16 + 4) + widths / 8));
    const std::size_t wanted = std::min(wanted_chunks, kMaxParts), max_strip = queries > 1024 ? kMaxQueries : 64;
    strip = std::clamp(ratio(heads * queries, wanted), kMinQueries, max_strip);
    strips = ratio(std::max<std::size_t>(queries, 1), strip);
    const std::size_t strips_of_group = a.heads_of_group * strips;
    strips_of_part = ratio(strips_of_group, ratio(wanted, groups));
    parts = ratio(strips_of_group, strips_of_part);
    chunks = ratio(groups * parts, ratio(groups * parts, wanted_chunks));  // of equal length
  }

  // body(part, scratch) for every part of every group, on several threads.
  template <class Body> void for_each_part(Body body) const {
    const std::size_t tile = std::min(strip, a.q.rows) * std::min(kKeys, a.k.rows);
    Array<T> scratch(Shape{chunks, 3 * tile});  // allocated by this thread's pool, which has it already
    parallel_for(a.batch * a.groups() * parts, chunks, [&](std::size_t begin, std::size_t end, std::size_t chunk) {
      T* const data = scratch.data() + chunk * 3 * tile;
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t group = i / parts, number = i % parts, first = number * strips_of_part;
        const std::size_t last = std::min(first + strips_of_part, a.heads_of_group * strips);
        body(Part{group / a.groups(), group % a.groups(), number, first, last},
             Scratch<T>{data, data + tile, data + 2 * tile});
      }
    });
  }

  template <class Body> void for_each_strip(const Part& part, Body body) const {
    for (std::size_t i = part.first; i < part.last; ++i) {
      const std::size_t h = part.g * a.heads_of_group + i / strips, t0 = i % strips * strip;
      Strip s{part.b, h, t0, std::min(t0 + strip, a.q.rows), 0};
      for (std::size_t t = t0; t < s.t1; ++t) s.visible = std::max(s.visible, a.masks.visible(part.b, h, t));
      body(s);
    }
  }

  template <class Body> static void for_each_tile(const Strip& s, Body body) {
    for (std::size_t s0 = 0; s0 < s.visible; s0 += kKeys) body(Tile{s, s0, std::min(s0 + kKeys, s.visible)});
  }

  // S = scale Q K^T within the tile, masked; Q holds the strip's queries. Only the first seen[i] scores of query t0 + i
  // are visible. Masks all rows before reading any: loading a vector right after storing its elements stalls.
  void masked_scores(const Tile& tile, Matrix<const T> Q, Matrix<const T> K, T* S, std::size_t* seen) const {
    gemm_on_this_thread<T>(Q, K.rows_between(tile.s0, tile.s1).t(), tile.matrix(S), a.scale);
    for (std::size_t i = 0; i < tile.queries(); ++i)
      seen[i] = a.masks.apply(tile.b, tile.h, tile.t0 + i, tile.s0, tile.keys(), S + i * tile.keys());
  }

  // Sets weights to 0 with the dropout's probability and scales the others up.
  void drop(const Tile& tile, T* weights) const {
    if (a.dropout == 0) return;
    for (std::size_t t = tile.t0; t < tile.t1; ++t, weights += tile.keys()) {
      const std::size_t row = (tile.b * a.heads + tile.h) * a.q.rows + t;
      vector_loops<T>().dropout(weights, weights, tile.keys(), a.dropout, a.dropout_key, row * a.k.rows + tile.s0);
    }
  }

  // A strip's rows of an array laid out like the queries or the result.
  template <class U> static Matrix<U> rows_of(const HeadLayout& layout, U* data, const Strip& s) {
    return layout.at(data, s.b, s.h).rows_between(s.t0, s.t1);
  }

  // The offset of a strip's statistics.
  std::size_t first_statistic(const Strip& s) const { return 2 * ((s.b * a.heads + s.h) * a.q.rows + s.t0); }
};

// The online softmax, tile of keys by tile: with m the largest score so far and l the sum of exp(S - m), a larger
// score m' in the next tile rescales the accumulators l and O by exp(m - m'). P has room for a tile.
template <class T>
void forward_strip(const Pass<T>& pass, const Strip& strip, Matrix<const T> Q, Matrix<const T> K, Matrix<const T> V,
                   Matrix<T> O, T* statistics, T* P) {
  constexpr T inf = std::numeric_limits<T>::infinity();
  const VectorLoops<T>& loops = vector_loops<T>();
  std::size_t seen[kMaxQueries];
  T m[kMaxQueries], l[kMaxQueries];
  std::fill_n(m, O.rows, -inf);
  std::fill_n(l, O.rows, T(0));
  if (strip.visible == 0) fill_zeros(O, 0, O.rows);

  pass.for_each_tile(strip, [&](const Tile& tile) {
    pass.masked_scores(tile, Q, K, P, seen);
    for (std::size_t i = 0; i < O.rows; ++i) {
      T* const scores = tile.matrix(P).row(i);
      const T larger = std::max(m[i], loops.max(scores, seen[i]));
      const T shift = larger == -inf ? T(0) : larger;  // no visible key yet: exp(-inf - 0) = 0
      const T shrink = tile.s0 > 0 ? std::exp(m[i] - shift) : T(0);
      l[i] = l[i] * shrink + loops.exp_sum(scores, scores, seen[i], shift);
      std::fill(scores + seen[i], scores + tile.keys(), T(0));
      m[i] = larger;
      if (tile.s0 > 0 && shrink != 1) loops.scale(O.row(i), O.columns, shrink);
    }
    pass.drop(tile, P);
    gemm_on_this_thread<T>(tile.matrix(P), V.rows_between(tile.s0, tile.s1), O, 1, tile.s0 > 0);
  });

  for (std::size_t i = 0; i < O.rows; ++i) {
    T* const saved = statistics + 2 * i;
    saved[0] = l[i] != 0 ? m[i] : 0;
    saved[1] = l[i] != 0 ? l[i] : inf;
    loops.scale(O.row(i), O.columns, 1 / saved[1]);
  }
}

// The gradients of keys and values. Each part of a group but the first sums them in its own memory.
template <class T> class KeyGradients {
 public:
  KeyGradients(const Pass<T>& pass, T* dk_data, T* dv_data)
      : a_(pass.a),
        parts_(pass.parts),
        dk_data_(dk_data),
        dv_data_(dv_data),
        size_(a_.k.rows * (a_.k.width + a_.v.width)),
        sums_(a_.batch * a_.groups() * (parts_ - 1) * size_),
        initialized_(a_.batch * a_.groups() * parts_, 0) {}

  Matrix<T> dK(const Part& part) {
    if (part.number == 0) return a_.k.at(dk_data_, part.b, part.g);
    const std::size_t index = group(part) * (parts_ - 1) + part.number - 1;
    return {sums_.data() + index * size_, a_.k.rows, a_.k.width};
  }
  Matrix<T> dV(const Part& part) {
    if (part.number == 0) return a_.v.at(dv_data_, part.b, part.g);
    return {dK(part).data + a_.k.rows * a_.k.width, a_.v.rows, a_.v.width};
  }

  // Keys before this one are initialized.
  std::size_t& initialized(const Part& part) { return initialized_[group(part) * parts_ + part.number]; }

  // Adds the parts one after the other, on several threads by keys.
  void add_parts() {
    const std::size_t keys = a_.k.rows;
    parallel_for(a_.batch * a_.groups() * keys, chunks_for(sums_.size()), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const Part first{i / keys / a_.groups(), i / keys % a_.groups(), 0, 0, 0};
        const std::size_t s = i % keys;
        for (Part part = first; ++part.number < parts_;) {
          if (s >= initialized(part)) continue;
          vector_loops<T>().add(dK(part).row(s), dK(first).row(s), a_.k.width);
          vector_loops<T>().add(dV(part).row(s), dV(first).row(s), a_.v.width);
        }
      }
    });
  }

 private:
  std::size_t group(const Part& part) const { return part.b * a_.groups() + part.g; }

  const Attention<T>& a_;
  std::size_t parts_;  // of a group
  T *dk_data_, *dv_data_;
  std::size_t size_;  // elements of dK and dV of a part
  xt::uvector<T, PoolAllocator<T>> sums_;
  std::vector<std::size_t, PoolAllocator<std::size_t>> initialized_;
};

// Operands of a part's backward pass: the keys and values of its group.
template <class T> struct BackwardPart {
  Matrix<const T> K, V;
  Matrix<T> dK, dV;
  Scratch<T> scratch;
  std::size_t& initialized;  // keys before this one are initialized in dK and dV

  void fill_up_to(std::size_t key) {
    if (key <= initialized) return;
    fill_zeros(dK, initialized, key);
    fill_zeros(dV, initialized, key);
    initialized = key;
  }
};

// With P = exp(S - m) / l recomputed, and P' = P after dropout:
//   dV = P'^T dO, dP' = dO V^T, dP = dP' with the same weights dropped
//   dS = P (dP - rowsum(dP P)), where rowsum(dP P) = rowsum(dO O)
//   dQ = scale dS K, dK = scale dS^T Q
template <class T>
void backward_strip(const Pass<T>& pass, BackwardPart<T>& part, const Strip& strip, Matrix<const T> Q,
                    Matrix<const T> O, Matrix<const T> dO, Matrix<T> dQ, const T* statistics) {
  const VectorLoops<T>& loops = vector_loops<T>();
  const bool drops = pass.a.dropout > 0;
  const T scale = pass.a.scale;
  std::size_t seen[kMaxQueries];
  T dot[kMaxQueries];  // rowsum(dO O)
  for (std::size_t i = 0; i < O.rows; ++i) dot[i] = loops.dot(dO.row(i), O.row(i), O.columns);
  if (strip.visible == 0) fill_zeros(dQ, 0, dQ.rows);

  pass.for_each_tile(strip, [&](const Tile& tile) {
    const Matrix<T> P = tile.matrix(part.scratch.P), dS = tile.matrix(part.scratch.dS),
                    dropped = drops ? tile.matrix(part.scratch.dropped) : P;
    pass.masked_scores(tile, Q, part.K, P.data, seen);
    for (std::size_t i = 0; i < P.rows; ++i) {
      const T* const saved = statistics + 2 * i;
      loops.exp_scaled(P.row(i), P.row(i), seen[i], saved[0], 1 / saved[1]);
      std::fill(P.row(i) + seen[i], P.row(i) + P.columns, T(0));
    }
    if (drops) std::copy_n(P.data, P.rows * P.columns, dropped.data);
    pass.drop(tile, dropped.data);

    const bool first = tile.s0 == part.initialized;  // the first gradient of these keys
    if (first)
      part.initialized = tile.s1;
    else
      part.fill_up_to(tile.s1);
    gemm_on_this_thread<T>(dropped.t(), dO, part.dV.rows_between(tile.s0, tile.s1), 1, !first);
    gemm_on_this_thread<T>(dO, part.V.rows_between(tile.s0, tile.s1).t(), dS);
    pass.drop(tile, dS.data);
    for (std::size_t i = 0; i < dS.rows; ++i) {
      loops.softmax_backward(P.row(i), dS.row(i), dS.row(i), seen[i], dot[i]);
      std::fill(dS.row(i) + seen[i], dS.row(i) + dS.columns, T(0));
    }
    gemm_on_this_thread<T>(dS, part.K.rows_between(tile.s0, tile.s1), dQ, scale, tile.s0 > 0);
    gemm_on_this_thread<T>(dS.t(), Q, part.dK.rows_between(tile.s0, tile.s1), scale, !first);
  });
}

}  // namespace

AttentionLayout layout_of_columns(const char* operation, const Shape& q, const Shape& k, const Shape& v,
                                  std::size_t heads) {
  const auto given = [&] { return to_string(q) + ", " + to_string(k) + " and " + to_string(v); };
  require(q.size() == 3 && k.size() == 3 && v.size() == 3, operation,
          "expected queries, keys and values of shape (B, T, H D), got ", given);
  require(k[0] == q[0] && v[0] == q[0], operation, "expected equal batch sizes, got ", given);
  require(v[1] == k[1], operation, "expected as many values as keys, got ", given);
  require(heads > 0 && q[2] % heads == 0, operation,
          "expected a width of queries divisible by the number of heads, got ", heads, " heads and shapes ", given);
  const std::size_t width = q[2] / heads, groups = width == 0 ? heads : k[2] / width;
  require(groups * width == k[2] && groups > 0 && heads % groups == 0, operation,
          "expected keys with the queries' width per head and a number of heads that divides the queries', got ", heads,
          " heads and shapes ", given);
  require(v[2] % groups == 0, operation, "expected a width of values divisible by the number of key heads, got ",
          groups, " heads and shapes ", given);
  require_addressable<char>(operation, {heads, v[2] / groups});  // the whole result is checked where it is made
  const auto columns = HeadLayout::of_columns;
  const HeadLayout queries = columns(heads, q[1], q[2]), out = columns(heads, q[1], v[2] / groups * heads);
  return {q[0], heads, heads / groups, queries, columns(groups, k[1], k[2]), columns(groups, v[1], v[2]), out};
}

template <class T>
void Attention<T>::forward(const T* q_data, const T* k_data, const T* v_data, T* out_data, T* statistics) const {
  const Pass<T> pass(*this);
  pass.for_each_part([&](const Part& part, const Scratch<T>& scratch) {
    const Matrix<const T> K = k.at(k_data, part.b, part.g), V = v.at(v_data, part.b, part.g);
    pass.for_each_strip(part, [&](const Strip& strip) {
      forward_strip(pass, strip, pass.rows_of(q, q_data, strip), K, V, pass.rows_of(out, out_data, strip),
                    statistics + pass.first_statistic(strip), scratch.P);
    });
  });
}

template <class T>
void Attention<T>::backward(const T* q_data, const T* k_data, const T* v_data, const T* out_data, const T* statistics,
                            const T* dout_data, T* dq_data, T* dk_data, T* dv_data) const {
  const Pass<T> pass(*this);
  KeyGradients<T> sums(pass, dk_data, dv_data);
  pass.for_each_part([&](const Part& part, const Scratch<T>& scratch) {
    const Matrix<const T> K = k.at(k_data, part.b, part.g), V = v.at(v_data, part.b, part.g);
    BackwardPart<T> to{K, V, sums.dK(part), sums.dV(part), scratch, sums.initialized(part)};
    pass.for_each_strip(part, [&](const Strip& strip) {
      backward_strip(pass, to, strip, pass.rows_of(q, q_data, strip), pass.rows_of(out, out_data, strip),
                     pass.rows_of(out, dout_data, strip), pass.rows_of(q, dq_data, strip),
                     statistics + pass.first_statistic(strip));
    });
    if (part.number == 0) to.fill_up_to(k.rows);
  });
  if (pass.parts > 1) sums.add_parts();
}

template struct Attention<float>;
template struct Attention<double>;

}  // namespace tapegrad::detail
