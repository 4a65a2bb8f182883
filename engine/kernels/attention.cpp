#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "../array/array.hpp"
#include "../array/internal/error.hpp"
#include "../array/internal/layout.hpp"
#include "../array/internal/parallel.hpp"
#include "vector_loops.hpp"

namespace tapegrad::detail {
namespace {

// A tile of scores and its two operands fit in the second-level cache. Short strips of queries skip more of a causal
// mask; long sequences gain more by loading the keys less often.
constexpr std::size_t kKeys = 256, kMaxQueries = 128, kMinQueries = 32;

// Keys and values of up to this many elements per head are transposed into a copy: OpenBLAS's own packing of small
// transposes takes three times as long as the product, and longer on several threads. Fewer queries than this are not
// worth a copy.
constexpr std::size_t kCopied = std::size_t{1} << 14, kQueriesWorthACopy = 9;
std::size_t copy_size(const HeadLayout& layout, std::size_t queries) {
  const std::size_t size = layout.rows * layout.width;
  return size <= kCopied && queries >= kQueriesWorthACopy ? size : 0;
}

// The transpose, copied if there is room.
template <class T> Matrix<const T> transpose(Matrix<const T> m, T* room) {
  if (room == nullptr) return m.t();
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
  require_addressable<char>(operation, {q[0], q[1], heads, v[2] / groups});
  return {q[0],
          heads,
          heads / groups,
          HeadLayout::of_columns(heads, q[1], q[2]),
          HeadLayout::of_columns(groups, k[1], k[2]),
          HeadLayout::of_columns(groups, v[1], v[2]),
          HeadLayout::of_columns(heads, q[1], v[2] / groups * heads)};
}

// Queries t0, ..., t1 - 1 of head h of batch entry b. Keys from `visible` on are masked for all of them.
template <class T> struct Attention<T>::Strip { std::size_t b, h, t0, t1, visible; };

// A strip's queries against the keys s0, ..., s1 - 1.
template <class T> struct Attention<T>::Tile : Strip {
  std::size_t s0, s1;

  std::size_t queries() const { return this->t1 - this->t0; }
  std::size_t keys() const { return s1 - s0; }
  Matrix<T> matrix(T* data) const { return {data, queries(), keys()}; }
};

// Working memory: three tiles, and copies of K^T and V^T or null.
template <class T> struct Attention<T>::Scratch { T *P, *dS, *dropped, *keys, *values; };

// The division of work among threads. With few groups, the strips of each group's heads form several parts. Depends on
// the shapes only, and so do the results.
template <class T> struct Attention<T>::Shares {
  std::size_t strip, strips;  // queries of a strip, and strips of a head
  std::size_t part, parts;    // strips of a part, and parts of a group
  std::size_t chunks;         // of the loop over the parts of all groups
};

// Strips first, ..., last - 1 of a group's heads, one head after the other.
template <class T> struct Attention<T>::Part { std::size_t b, g, number, first, last; };

template <class T> typename Attention<T>::Shares Attention<T>::shares() const {
  // A score costs the softmax about 64 multiplications. Few queries cost less than reading the keys.
  constexpr std::size_t kMaxParts = 8;  // of all groups: each has its own sums of the gradients of keys and values
  const auto ratio = [](std::size_t above, std::size_t below) { return (above + below - 1) / below; };  // rounded up
  const std::size_t all_heads = std::max<std::size_t>(batch * heads, 1), all = ratio(all_heads, heads_of_group);
  const std::size_t widths = q.width + v.width;
  const std::size_t chunks = chunks_for(all_heads * k.rows * (q.rows * (widths / 16 + 4) + widths / 8));
  const std::size_t wanted = std::min(chunks, kMaxParts), max_strip = q.rows > 1024 ? kMaxQueries : 64;
  Shares s;
  s.strip = std::clamp(ratio(all_heads * q.rows, wanted), kMinQueries, max_strip);
  s.strips = ratio(std::max<std::size_t>(q.rows, 1), s.strip);
  const std::size_t strips_of_group = heads_of_group * s.strips;
  s.part = ratio(strips_of_group, ratio(wanted, all));
  s.parts = ratio(strips_of_group, s.part);
  s.chunks = ratio(all * s.parts, ratio(all * s.parts, chunks));  // of equal length
  return s;
}

// body(part, scratch) for every part of every group, on several threads.
template <class T> template <class Body> void Attention<T>::for_each_part(const Shares& shares, Body body) const {
  const std::size_t tile = std::min(shares.strip, q.rows) * std::min(kKeys, k.rows);
  const std::size_t keys = copy_size(k, q.rows), values = copy_size(v, q.rows), room = 3 * tile + keys + values;
  Array<T> scratch(Shape{shares.chunks, room});  // allocated by this thread's pool, which has it already
  const auto run = [&](std::size_t begin, std::size_t end, std::size_t chunk) {
    T* const data = scratch.data() + chunk * room;
    T* const copies = data + 3 * tile;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t group = i / shares.parts, number = i % shares.parts, first = number * shares.part;
      const std::size_t last = std::min(first + shares.part, heads_of_group * shares.strips);
      body(Part{group / groups(), group % groups(), number, first, last},
           Scratch{data, data + tile, data + 2 * tile, keys > 0 ? copies : nullptr,
                   values > 0 ? copies + keys : nullptr});
    }
  };
  parallel_for(batch * groups() * shares.parts, shares.chunks, run);
}

template <class T>
template <class Body>
void Attention<T>::for_each_strip(const Part& part, const Shares& shares, Body body) const {
  for (std::size_t i = part.first; i < part.last; ++i) {
    const std::size_t h = part.g * heads_of_group + i / shares.strips, t0 = i % shares.strips * shares.strip;
    Strip strip{part.b, h, t0, std::min(t0 + shares.strip, q.rows), 0};
    for (std::size_t t = t0; t < strip.t1; ++t) strip.visible = std::max(strip.visible, masks.visible(part.b, h, t));
    body(strip);
  }
}

template <class T> template <class Body> void Attention<T>::for_each_tile(const Strip& strip, Body body) const {
  for (std::size_t s0 = 0; s0 < strip.visible; s0 += kKeys) body(Tile{strip, s0, std::min(s0 + kKeys, strip.visible)});
}

// S = scale Q K^T within the tile, masked; Q holds the strip's queries. Only the first seen[i] scores of query t0 + i
// are visible. Masks all rows before reading any: loading a vector right after storing its elements one by one stalls.
template <class T>
void Attention<T>::masked_scores(const Tile& tile, Matrix<const T> Q, Matrix<const T> Kt, T* S,
                                 std::size_t* seen) const {
  gemm_on_this_thread<T>(Q, columns_between(Kt, tile.s0, tile.s1), tile.matrix(S), scale);
  for (std::size_t i = 0; i < tile.queries(); ++i)
    seen[i] = masks.apply(tile.b, tile.h, tile.t0 + i, tile.s0, tile.keys(), S + i * tile.keys());
}

// Sets weights to 0 with the dropout's probability and scales the others up.
template <class T> void Attention<T>::drop(const Tile& tile, T* weights) const {
  if (dropout == 0) return;
  for (std::size_t t = tile.t0; t < tile.t1; ++t, weights += tile.keys()) {
    const std::size_t row = (tile.b * heads + tile.h) * q.rows + t;
    vector_loops<T>().dropout(weights, weights, tile.keys(), dropout, dropout_key, row * k.rows + tile.s0);
  }
}

// A strip's rows of an array laid out like the queries or the result.
template <class T>
template <class U>
Matrix<U> Attention<T>::rows_of(const HeadLayout& layout, U* data, const Strip& strip) {
  return layout.at(data, strip.b, strip.h).rows_between(strip.t0, strip.t1);
}

// The offset of a strip's statistics.
template <class T> std::size_t Attention<T>::first_statistic(const Strip& strip) const {
  return 2 * ((strip.b * heads + strip.h) * q.rows + strip.t0);
}

// Operands of a strip's forward pass.
template <class T> struct Attention<T>::ForwardStrip : Strip {
  Matrix<const T> Q, Kt, V;
  Matrix<T> O;
  T* statistics;  // (queries, 2)
  T* P;           // a tile
};

template <class T>
void Attention<T>::forward(const T* q_data, const T* k_data, const T* v_data, T* out_data, T* statistics) const {
  const Shares shared = shares();
  for_each_part(shared, [&](const Part& part, const Scratch& scratch) {
    const Matrix<const T> Kt = transpose(k.at(k_data, part.b, part.g), scratch.keys), V = v.at(v_data, part.b, part.g);
    for_each_strip(part, shared, [&](const Strip& strip) {
      forward_strip({strip, rows_of(q, q_data, strip), Kt, V, rows_of(out, out_data, strip),
                     statistics + first_statistic(strip), scratch.P});
    });
  });
}

// The online softmax, tile of keys by tile: with m the largest score so far and l the sum of exp(S - m), a larger
// score m' in the next tile rescales the accumulators l and O by exp(m - m').
template <class T> void Attention<T>::forward_strip(const ForwardStrip& strip) const {
  constexpr T inf = std::numeric_limits<T>::infinity();
  const VectorLoops<T>& loops = vector_loops<T>();
  const Matrix<T> O = strip.O;
  std::size_t seen[kMaxQueries];
  T m[kMaxQueries], l[kMaxQueries];
  std::fill_n(m, O.rows, -inf);
  std::fill_n(l, O.rows, T(0));
  if (strip.visible == 0) fill_zeros(O, 0, O.rows);

  for_each_tile(strip, [&](const Tile& tile) {
    masked_scores(tile, strip.Q, strip.Kt, strip.P, seen);
    for (std::size_t i = 0; i < O.rows; ++i) {
      T* const scores = tile.matrix(strip.P).row(i);
      const T larger = std::max(m[i], loops.max(scores, seen[i]));
      const T shift = larger == -inf ? T(0) : larger;  // no visible key yet: exp(-inf - 0) = 0
      const T shrink = tile.s0 > 0 ? std::exp(m[i] - shift) : T(0);
      l[i] = l[i] * shrink + loops.exp_sum(scores, scores, seen[i], shift);
      std::fill(scores + seen[i], scores + tile.keys(), T(0));
      m[i] = larger;
      if (tile.s0 > 0 && shrink != 1) loops.scale(O.row(i), O.columns, shrink);
    }
    drop(tile, strip.P);
    gemm_on_this_thread<T>(tile.matrix(strip.P), strip.V.rows_between(tile.s0, tile.s1), O, 1, tile.s0 > 0);
  });

  for (std::size_t i = 0; i < O.rows; ++i) {
    T* const saved = strip.statistics + 2 * i;
    saved[0] = l[i] != 0 ? m[i] : 0;
    saved[1] = l[i] != 0 ? l[i] : inf;
    loops.scale(O.row(i), O.columns, 1 / saved[1]);
  }
}

// Operands of a part's backward pass: the keys and values of its group.
template <class T> struct Attention<T>::BackwardPart {
  Matrix<const T> K, Kt, Vt;
  Matrix<T> dK, dV;
  Scratch scratch;
  std::size_t initialized = 0;  // keys before this one are initialized in dK and dV

  void fill_up_to(std::size_t key) {
    if (key <= initialized) return;
    fill_zeros(dK, initialized, key);
    fill_zeros(dV, initialized, key);
    initialized = key;
  }
};

// Operands of a strip's backward pass.
template <class T> struct Attention<T>::BackwardStrip : Strip {
  Matrix<const T> Q, O, dO;
  Matrix<T> dQ;
  const T* statistics;  // (queries, 2)
  T dot[kMaxQueries];   // rowsum(dO O)
};

// The parts of a group share its keys. Each but the first sums their gradients in its own memory.
template <class T> class Attention<T>::PartialSums {
 public:
  PartialSums(const Attention& attention, std::size_t parts)
      : a_(attention),
        others_(parts - 1),
        size_(a_.k.rows * (a_.k.width + a_.v.width)),
        sums_(Shape{a_.batch * a_.groups() * others_, size_}),
        initialized_(Shape{a_.batch * a_.groups() * others_}) {}

  Matrix<T> dK(const Part& part) { return {sums_.data() + index(part) * size_, a_.k.rows, a_.k.width}; }
  Matrix<T> dV(const Part& part) { return {dK(part).data + a_.k.rows * a_.k.width, a_.v.rows, a_.v.width}; }

  // Keys before this one are initialized.
  std::int64_t& initialized(const Part& part) { return initialized_.data()[index(part)]; }

  // Adds the parts one after the other, on several threads by keys.
  void add_to(T* dk_data, T* dv_data) {
    const auto add = [](Matrix<T> from, Matrix<T> to, std::size_t s) {
      vector_loops<T>().add(from.row(s), to.row(s), to.columns);
    };
    const std::size_t keys = a_.k.rows;
    parallel_for(a_.batch * a_.groups() * keys, chunks_for(sums_.size()), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t b = i / keys / a_.groups(), g = i / keys % a_.groups(), s = i % keys;
        for (Part part{b, g, 1, 0, 0}; part.number <= others_; ++part.number) {
          if (static_cast<std::int64_t>(s) >= initialized(part)) continue;
          add(dK(part), a_.k.at(dk_data, b, g), s);
          add(dV(part), a_.v.at(dv_data, b, g), s);
        }
      }
    });
  }

 private:
  std::size_t index(const Part& part) const { return (part.b * a_.groups() + part.g) * others_ + part.number - 1; }

  const Attention& a_;
  std::size_t others_, size_;  // parts of a group, and elements of each
  Array<T> sums_;
  IntArray initialized_;
};

template <class T>
void Attention<T>::backward(const T* q_data, const T* k_data, const T* v_data, const T* out_data, const T* statistics,
                            const T* dout_data, T* dq_data, T* dk_data, T* dv_data) const {
  const Shares shared = shares();
  std::optional<PartialSums> sums;
  if (shared.parts > 1) sums.emplace(*this, shared.parts);
  for_each_part(shared, [&](const Part& part, const Scratch& scratch) {
    const std::size_t b = part.b, g = part.g;
    const bool first = part.number == 0;
    BackwardPart to{k.at(k_data, b, g),
                    transpose(k.at(k_data, b, g), scratch.keys),
                    transpose(v.at(v_data, b, g), scratch.values),
                    first ? k.at(dk_data, b, g) : sums->dK(part),
                    first ? v.at(dv_data, b, g) : sums->dV(part),
                    scratch};
    for_each_strip(part, shared, [&](const Strip& strip) {
      backward_strip({strip,
                      rows_of(q, q_data, strip),
                      rows_of(out, out_data, strip),
                      rows_of(out, dout_data, strip),
                      rows_of(q, dq_data, strip),
                      statistics + first_statistic(strip),
                      {}},
                     to);
    });
    if (first)
      to.fill_up_to(k.rows);
    else
      sums->initialized(part) = static_cast<std::int64_t>(to.initialized);
  });
  if (sums) sums->add_to(dk_data, dv_data);
}

template <class T> void Attention<T>::backward_strip(BackwardStrip strip, BackwardPart& part) const {
  for (std::size_t i = 0; i < strip.O.rows; ++i)
    strip.dot[i] = vector_loops<T>().dot(strip.dO.row(i), strip.O.row(i), strip.O.columns);
  if (strip.visible == 0) fill_zeros(strip.dQ, 0, strip.dQ.rows);
  for_each_tile(strip, [&](const Tile& tile) { backward_tile(tile, strip, part); });
}

// With P = exp(S - m) / l recomputed, and P' = P after dropout:
//   dV = P'^T dO, dP' = dO V^T, dP = dP' with the same weights dropped
//   dS = P (dP - rowsum(dP P)), where rowsum(dP P) = rowsum(dO O)
//   dQ = scale dS K, dK = scale dS^T Q
template <class T>
void Attention<T>::backward_tile(const Tile& tile, const BackwardStrip& strip, BackwardPart& part) const {
  const VectorLoops<T>& loops = vector_loops<T>();
  const Matrix<T> P = tile.matrix(part.scratch.P), dS = tile.matrix(part.scratch.dS),
                  dropped = dropout > 0 ? tile.matrix(part.scratch.dropped) : P;
  const Matrix<const T> K = part.K.rows_between(tile.s0, tile.s1), Vt = columns_between(part.Vt, tile.s0, tile.s1);
  std::size_t seen[kMaxQueries];
  masked_scores(tile, strip.Q, part.Kt, P.data, seen);
  for (std::size_t i = 0; i < P.rows; ++i) {
    const T* const saved = strip.statistics + 2 * i;
    loops.exp_scaled(P.row(i), P.row(i), seen[i], saved[0], 1 / saved[1]);
    std::fill(P.row(i) + seen[i], P.row(i) + P.columns, T(0));
  }
  if (dropout > 0) std::copy_n(P.data, P.rows * P.columns, dropped.data);
  drop(tile, dropped.data);

  const bool first = tile.s0 == part.initialized;  // the first gradient of these keys
  if (first)
    part.initialized = tile.s1;
  else
    part.fill_up_to(tile.s1);
  gemm_on_this_thread<T>(constant(dropped).t(), strip.dO, part.dV.rows_between(tile.s0, tile.s1), 1, !first);
  gemm_on_this_thread<T>(strip.dO, Vt, dS);
  drop(tile, dS.data);
  for (std::size_t i = 0; i < dS.rows; ++i) {
    loops.softmax_backward(P.row(i), dS.row(i), dS.row(i), seen[i], strip.dot[i]);
    std::fill(dS.row(i) + seen[i], dS.row(i) + dS.columns, T(0));
  }
  gemm_on_this_thread<T>(dS, K, strip.dQ, scale, tile.s0 > 0);
  gemm_on_this_thread<T>(constant(dS).t(), strip.Q, part.dK.rows_between(tile.s0, tile.s1), scale, !first);
}

template struct Attention<float>;
template struct Attention<double>;

}  // namespace tapegrad::detail
