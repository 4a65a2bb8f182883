#include <xtensor/xview.hpp>

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "in_double.hpp"
#include "refused.hpp"
#include "threads.hpp"

using Mask = tg::AttentionMask;

namespace {

// Rows first, ..., last - 1 of every sequence.
template <class T> tg::Tensor<T> piece(const tg::Tensor<T>& x, std::size_t first, std::size_t last) {
  return tg::narrow(x, 1, static_cast<std::ptrdiff_t>(first), static_cast<std::ptrdiff_t>(last - first));
}

// Attention over x in consecutive pieces ending at `ends`, through one cache.
template <class T>
tg::Array<T> in_pieces(const tg::MultiHeadAttention<T>& attention, const tg::Tensor<T>& x,
                       const std::vector<std::size_t>& ends) {
  tg::KeyValueCache<T> cache;
  std::vector<tg::Tensor<T>> pieces;
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    pieces.push_back(attention(piece(x, first, end), cache));
    CHECK(cache.size() == end);
    first = end;
  }
  return tg::cat(pieces, 1).value();
}

std::vector<std::size_t> one_by_one(std::size_t count) {
  std::vector<std::size_t> ends(count);
  for (std::size_t i = 0; i < count; ++i) ends[i] = i + 1;
  return ends;
}

}  // namespace

TEST_CASE("Attention with a cache matches attention at once, for any pieces, heads and rotary positions") {
  tg::manual_seed(1);
  for (const std::size_t batch : {1, 3})
    for (const std::size_t heads : {1, 2, 8})
      for (std::size_t kv_heads = heads; kv_heads > 0; kv_heads /= 2)
        for (const std::optional<double> rotary_base : {std::optional<double>(), std::optional<double>(100)}) {
          INFO("batch = ", batch, ", heads = ", heads, ", kv_heads = ", kv_heads,
               ", rotary = ", rotary_base.has_value());
          const tg::MultiHeadAttention<double> attention(32, heads,
                                                         {.num_kv_heads = kv_heads, .rotary_base = rotary_base});
          const Tensor x(tg::normal<double>({batch, 150, 32}));
          const auto whole = attention(x, Mask::causal()).value();
          for (const auto& ends :
               std::vector<std::vector<std::size_t>>{{150}, one_by_one(150), {1, 3, 3, 60, 61, 64, 65, 150}})
            check_close(in_pieces(attention, x, ends), whole, 1e-12);
        }
}

TEST_CASE("A long text with a cache matches the text at once, over several tiles of keys, in float and double") {
  tg::manual_seed(2);
  const auto check = [](auto number, double tolerance) {
    using T = decltype(number);
    const tg::MultiHeadAttention<T> attention(24, 3);
    const tg::Tensor<T> x(tg::normal<T>({2, 700, 24}));
    check_close(in_pieces(attention, x, {1, 255, 256, 257, 512, 513, 514, 699, 700}),
                attention(x, Mask::causal()).value(), tolerance);
  };
  check(0.0, 1e-12);
  check(0.0F, 1e-5);
}

TEST_CASE("Attention with a cache is the same on any number of threads") {
  tg::manual_seed(3);
  const tg::MultiHeadAttention<float> attention(64, 4);
  const tg::Tensor<float> x(tg::normal<float>({2, 600, 64}));
  std::vector<std::size_t> ends{591, 592, 600};  // pieces whose projections are too small to split among threads
  for (std::size_t end = 540; end > 0; end -= 60) ends.insert(ends.begin(), end);
  tg::Array<float> on_one;
  for (const std::size_t count : {1, 2, 3, 7}) {
    const Threads threads(count);
    const auto y = in_pieces(attention, x, ends);
    if (count == 1) on_one = y;
    CHECK(y == on_one);
  }
}

TEST_CASE("The mask with a cache covers all keys in the cache") {
  tg::manual_seed(4);
  const tg::MultiHeadAttention<double> attention(8, 2);
  const Tensor x(tg::normal<double>({2, 5, 8}));
  const tg::BoolArray keep{{false, false, true, true, true}, {true, true, true, true, true}};  // padded in front
  const auto whole = attention(x, Mask::causal() & Mask::key_padding(keep));
  tg::KeyValueCache<double> cache, all;
  const Mask first_keys = Mask::key_padding(xt::view(keep, xt::all(), xt::range(0, 3)));
  const auto first = attention(piece(x, 0, 3), cache, Mask::causal() & first_keys);
  check_close(first.value(), piece(whole, 0, 3).value(), 1e-12);
  const auto rest = attention(piece(x, 3, 5), cache, Mask::causal() & Mask::key_padding(keep));
  check_close(rest.value(), piece(whole, 3, 5).value(), 1e-12);
  check_close(attention(x, all, Mask::none()).value(), attention(x, Mask::none()).value(), 1e-12);
}

TEST_CASE("A refused piece leaves the cache unchanged") {
  tg::manual_seed(5);
  tg::MultiHeadAttention<double> attention(8, 2);
  const Tensor x(tg::normal<double>({2, 3, 8})), other(tg::normal<double>({1, 3, 8}));
  const Tensor wide(tg::normal<double>({2, 1, 16})), one = piece(x, 2, 3), half = tg::narrow(one, 2, 0, 4);
  const auto whole = attention(x, Mask::causal());
  tg::KeyValueCache<double> cache;
  attention(piece(x, 0, 2), cache);

  const auto refused = [](const std::string& text, auto call) { check_refused("KeyValueCache", text, call); };
  refused("2 tokens of 2 sequences", [&] { attention(other, cache); });
  attention.num_heads = 4;
  refused("4 heads with keys of width 2", [&] { attention(one, cache); });
  attention.num_heads = 2;
  refused("(2, 1, 1, 2)", [&] { attention(one, cache, Mask::key_padding({{true, false}, {true, true}})); });
  refused("4 heads with keys of width 4", [&] { cache.attend(wide, wide, wide, 4); });
  refused("and values of width 2", [&] { cache.attend(one, one, half, 2); });
  refused("got 2 sequences in 1 heads with keys of width 4", [&] { cache.attend(one, half, half, 2); });
  refused("heads", [&] { cache.attend(x, x, x, 3); });
  refused("(2, 3, 8)", [&] { cache.attend(x, x, piece(x, 0, 2), 2); });
  {
    tg::Tape tape;
    CHECK_THROWS_WITH_AS(attention(one, cache), Contains("[KeyValueCache] expected"), std::logic_error);
    const tg::NoGrad pause;
    CHECK_NOTHROW(attention(piece(x, 2, 2), cache));
  }
  CHECK(cache.size() == 2);
  check_close(attention(one, cache).value(), piece(whole, 2, 3).value(), 1e-12);
}

TEST_CASE("A cache checks each of queries, keys and values, and stays unchanged if one is refused") {
  tg::manual_seed(7);
  using Operands = std::array<Tensor, 3>;
  const auto draw = [](const tg::Shape& shape) { return Tensor(tg::normal<double>(shape)); };
  const Operands first{draw({2, 3, 8}), draw({2, 3, 8}), draw({2, 3, 8})};
  const Operands next{draw({2, 1, 8}), draw({2, 1, 8}), draw({2, 1, 8})};
  const auto attend = [](tg::KeyValueCache<double>& cache, const Operands& x) {
    return cache.attend(x[0], x[1], x[2], 2).value();
  };
  for (const bool is_empty : {true, false}) {
    tg::KeyValueCache<double> cache;
    if (!is_empty) attend(cache, first);
    const std::size_t size = cache.size();
    tg::KeyValueCache<double> reference = cache;
    const Array expected = attend(reference, next);
    for (const std::size_t changed : {0, 1, 2}) {
      CAPTURE(is_empty);
      CAPTURE(changed);
      Operands x = next;
      for (const tg::Shape& shape :
           std::vector<tg::Shape>{{}, {8}, {1, 8}, {2, 1, 2, 4}, {3, 1, 8}, {2, 2, 8}, {2, 1, 7}, {2, 1, 0}}) {
        if (changed == 2 && shape == tg::Shape{2, 1, 0} && is_empty) continue;  // values may have no width
        x[changed] = draw(shape);
        check_refused("KeyValueCache", "", [&] { attend(cache, x); });
      }
      Parameter parameter(next[changed].value());
      x[changed] = parameter;
      CHECK_THROWS_WITH_AS(attend(cache, x), Contains("[KeyValueCache] expected constants"), std::logic_error);
      {
        const tg::Tape tape;
        x[changed] = parameter * 1.0;
        CHECK_THROWS_WITH_AS(attend(cache, x), Contains("[KeyValueCache] expected constants"), std::logic_error);
        x[changed] = parameter.detach();
        tg::KeyValueCache<double> copy = cache;
        CHECK(attend(copy, x) == expected);
      }
      x[changed] = {};
      CHECK_THROWS_AS(attend(cache, x), std::logic_error);
      CHECK(cache.size() == size);
    }
    CHECK(attend(cache, next) == expected);
  }
}

TEST_CASE("Zero sequences and zero tokens are accepted") {
  const tg::MultiHeadAttention<double> attention(8, 2);
  tg::KeyValueCache<double> cache;
  CHECK(attention(Tensor(Array(tg::Shape{0, 3, 8})), cache).shape() == tg::Shape{0, 3, 8});
  CHECK(cache.size() == 3);
  tg::KeyValueCache<double> none;
  CHECK(attention(Tensor(Array(tg::Shape{2, 0, 8})), none).shape() == tg::Shape{2, 0, 8});
  CHECK(none.size() == 0);
}

TEST_CASE("A cache is a value: a copy continues independently, and an empty one starts another text") {
  tg::manual_seed(6);
  const tg::MultiHeadAttention<double> attention(8, 2);
  const tg::Tensor<double> x(tg::normal<double>({1, 3, 8})), y(tg::normal<double>({4, 2, 8}));
  tg::KeyValueCache<double> cache;
  attention(piece(x, 0, 2), cache);
  tg::KeyValueCache<double> copy = cache;
  attention(piece(x, 0, 1), cache);
  CHECK(copy.size() == 2);
  const auto whole = attention(x, Mask::causal());
  check_close(attention(piece(x, 2, 3), copy).value(), piece(whole, 2, 3).value(), 1e-12);

  cache = {};
  CHECK(cache.size() == 0);
  check_close(attention(y, cache).value(), attention(y, Mask::causal()).value(), 1e-12);
}
