/// Compares fused attention with its definition in plain loops, forward and backward, at sizes that select different
/// code paths: several tiles of keys, strips of queries, too many keys to copy, both head layouts, threads, and masks
/// of every kind. The memory it uses is first filled with NaN.
#include <tapegrad/engine/kernels/attention.hpp>

#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "close.hpp"
#include "poison.hpp"
#include "special_values.hpp"
#include "threads.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Mask = tg::AttentionMask;

namespace {

// The mask's addend for the score of a query and a key; -inf hides the key.
using Bias = std::function<double(std::size_t b, std::size_t h, std::size_t t, std::size_t s)>;

struct Sizes {
  std::size_t batch, heads, queries, keys, width, value_width;
  std::size_t heads_of_group = 1;  // sharing keys and values

  std::size_t groups() const { return heads / heads_of_group; }
};

struct Options {
  double dropout = 0;
  std::optional<double> scale{};
};

// The output, and the gradients of q, k and v.
using Results = std::vector<Array>;

// q, dO: (B, H, T, width), k, v: (B, G, S, width)
Results by_definition(const Sizes& n, const Array& q, const Array& k, const Array& v, const Array& dout,
                      const Bias& bias, const Options& options, std::uint64_t key) {
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(n.width)));
  Results r{Array(dout.shape(), 0.0), Array(q.shape(), 0.0), Array(k.shape(), 0.0), Array(v.shape(), 0.0)};
  std::vector<double> p(n.keys), dp(n.keys);
  for (std::size_t head = 0; head < n.batch * n.heads; ++head)
    for (std::size_t t = 0; t < n.queries; ++t) {
      const std::size_t query = head * n.queries + t, b = head / n.heads, h = head % n.heads;
      const double *Q = q.data() + query * n.width, *dO = dout.data() + query * n.value_width;
      double *O = r[0].data() + query * n.value_width, *dQ = r[1].data() + query * n.width;
      const std::size_t first_key = (b * n.groups() + h / n.heads_of_group) * n.keys;
      const double *K = k.data() + first_key * n.width, *V = v.data() + first_key * n.value_width;
      double *dK = r[2].data() + first_key * n.width, *dV = r[3].data() + first_key * n.value_width;

      for (std::size_t s = 0; s < n.keys; ++s) {
        const double score = std::inner_product(Q, Q + n.width, K + s * n.width, 0.0), added = bias(b, h, t, s);
        p[s] = added == -kInfinity ? added : scale * score + added;
      }
      const double largest = *std::max_element(p.begin(), p.end());
      if (largest == -kInfinity) continue;  // no visible key: zeros
      double sum = 0, rowsum = 0;
      for (double& x : p) sum += x = std::exp(x - largest);
      for (std::size_t s = 0; s < n.keys; ++s) {
        p[s] /= sum;
        const bool drops = options.dropout > 0 && tg::random_uniform(key, query * n.keys + s) < options.dropout;
        const double kept = drops ? 0 : 1 / (1 - options.dropout);
        for (std::size_t i = 0; i < n.value_width; ++i) {
          O[i] += p[s] * kept * V[s * n.value_width + i];
          dV[s * n.value_width + i] += p[s] * kept * dO[i];
        }
        dp[s] = kept * std::inner_product(dO, dO + n.value_width, V + s * n.value_width, 0.0);
        rowsum += dp[s] * p[s];
      }
      for (std::size_t s = 0; s < n.keys; ++s) {
        const double ds = scale * p[s] * (dp[s] - rowsum);
        for (std::size_t i = 0; i < n.width; ++i) {
          dQ[i] += ds * K[s * n.width + i];
          dK[s * n.width + i] += ds * Q[i];
        }
      }
    }
  return r;
}

// (B, H, T, D) -> (B, T, H D)
template <class T> tg::Tensor<T> side_by_side(const tg::Tensor<T>& x) {
  const tg::Shape& s = x.shape();
  return tg::reshape(tg::transpose(x, 1, 2), {s[0], s[2], s[1] * s[3]});
}

template <class T>
Results at_once(const Sizes& n, const std::vector<Array>& inputs, const Array& dout, const Mask& mask,
                const Options& options, bool heads_side_by_side) {
  std::vector<tg::Parameter<T>> x;
  for (const Array& input : inputs) x.emplace_back(input);
  const tg::AttentionOptions given{.dropout = options.dropout, .scale = options.scale};
  const std::size_t heads = n.batch * n.heads;
  poison_pool();
  for (const std::size_t elements :
       {heads * n.queries * n.width, n.batch * n.groups() * n.keys * n.width,
        n.batch * n.groups() * n.keys * n.value_width, heads * n.queries * n.value_width, heads * n.queries * 2})
    poison(elements * sizeof(T));
  tg::Tape tape;
  tg::Tensor<T> y;
  if (heads_side_by_side)
    y = tg::transpose(tg::reshape(tg::multi_head_attention(side_by_side<T>(x[0]), side_by_side<T>(x[1]),
                                                           side_by_side<T>(x[2]), n.heads, mask, given),
                                  {n.batch, n.queries, n.heads, n.value_width}),
                      1, 2);
  else
    y = tg::scaled_dot_product_attention<T>(x[0], x[1], x[2], mask, given);
  y.backward(tg::Array<T>(dout));
  Results r{Array(y.value())};
  for (const auto& parameter : x) r.push_back(Array(parameter.grad()));
  return r;
}

void check(const std::string& name, const Sizes& n, const Mask& mask, const Bias& bias, const Options& options = {}) {
  INFO(name, ": ", n.queries, " queries, ", n.keys, " keys");
  tg::manual_seed(5);
  const std::vector<Array> inputs{tg::normal<double>({n.batch, n.heads, n.queries, n.width}),
                                  tg::normal<double>({n.batch, n.groups(), n.keys, n.width}),
                                  tg::normal<double>({n.batch, n.groups(), n.keys, n.value_width})};
  const Array dout = tg::uniform<double>({n.batch, n.heads, n.queries, n.value_width}, -1, 1);
  tg::manual_seed(6);
  const std::uint64_t key = tg::default_generator().next_key();
  const Results expected = by_definition(n, inputs[0], inputs[1], inputs[2], dout, bias, options, key);
  const auto same = [&](const Results& actual, double tolerance) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);  // the output, dQ, dK, dV
      check_close(actual[i], expected[i], tolerance);
    }
  };
  for (const bool heads_side_by_side : {false, true}) {
    if (n.heads_of_group > 1 && !heads_side_by_side) continue;
    CAPTURE(heads_side_by_side);
    Results on_one_thread;
    for (const std::size_t threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      const Threads limit(threads);
      if (threads == 3) {
        tg::manual_seed(6);
        same(at_once<double>(n, inputs, dout, mask, options, heads_side_by_side), 1e-11);
      }
      tg::manual_seed(6);
      const Results in_float = at_once<float>(n, inputs, dout, mask, options, heads_side_by_side);
      if (threads == 1) same(on_one_thread = in_float, 2e-4);
      CHECK(in_float == on_one_thread);  // to the bit
    }
  }
}

double nothing(std::size_t, std::size_t, std::size_t, std::size_t) { return 0; }
// A causal mask: the last query sees all keys, the one before it all but the last.
Bias future(std::size_t queries, std::size_t keys) {
  return [=](auto, auto, std::size_t t, std::size_t s) { return s + queries <= t + keys ? 0 : -kInfinity; };
}

// About half of the pairs, different for each batch entry and head.
bool seen(std::size_t b, std::size_t h, std::size_t t, std::size_t s) {
  return tg::random_uniform(7 + b * 10 + h, t * 1000 + s) < 0.5;
}

}  // namespace

TEST_CASE("Attention matches its definition for a single tile and strip, and for uneven ones") {
  check("one of each", {1, 1, 1, 1, 1, 1}, {}, nothing);
  check("small", {2, 3, 5, 7, 4, 3}, {}, nothing);
  check("a scale", {1, 2, 5, 7, 4, 3}, {}, nothing, {.scale = -0.7});
  for (const std::size_t queries : {63, 64, 65}) check("strips", {1, 2, queries, 20, 4, 6}, {}, nothing);
  for (const std::size_t keys : {255, 256, 257}) check("tiles", {2, 1, 10, keys, 4, 6}, {}, nothing);
  check("of each some", {1, 2, 130, 600, 6, 4}, {}, nothing);
}

TEST_CASE("Attention matches its definition for keys and values too large to copy") {
  check("wide keys", {1, 2, 70, 300, 64, 5}, {}, nothing);
  check("wide values", {1, 2, 70, 300, 5, 64}, {}, nothing);
  check("both, causal", {2, 1, 70, 300, 64, 70}, Mask::causal(), future(70, 300));
}

TEST_CASE("Attention matches its definition for long strips of queries") {
  check("more than 1024 queries", {1, 1, 1100, 300, 3, 4}, {}, nothing);
  check("more than 1024 queries, causal", {1, 2, 1030, 270, 3, 2}, Mask::causal(), future(1030, 270));
}

TEST_CASE("Attention with few heads, whose queries are divided, matches its definition") {
  check("one head", {1, 1, 300, 300, 16, 12}, {}, nothing);
  check("one head, causal", {1, 1, 500, 500, 16, 12}, Mask::causal(), future(500, 500));
  check("one head, causal, more queries", {1, 1, 500, 200, 16, 12}, Mask::causal(), future(500, 200));
  check("long strips", {1, 1, 1300, 300, 8, 12}, Mask::causal(), future(1300, 300));
  check("three heads", {1, 3, 250, 300, 16, 12}, Mask::causal(), future(250, 300), {.dropout = 0.2});
  check("one head, not copied", {1, 1, 200, 300, 64, 60}, Mask::causal(), future(200, 300));
  tg::IntArray lengths(tg::Shape{1, 400});  // middle queries see more keys than the last ones; some see none
  for (std::size_t t = 0; t < 400; ++t) lengths(0, t) = t < 100 ? 0 : t < 250 ? 310 : 17;
  check("lengths", {1, 1, 400, 310, 16, 12}, Mask::valid_lens(lengths),
        [&](auto, auto, auto t, auto s) { return static_cast<std::int64_t>(s) < lengths(0, t) ? 0 : -kInfinity; });
}

TEST_CASE("Attention of one query or a few queries matches its definition") {
  check("one query", {1, 4, 1, 1000, 32, 32}, Mask::causal(), future(1, 1000));
  check("one query of every entry", {3, 2, 1, 300, 5, 7}, {}, nothing);
  check("one query, one head", {1, 1, 1, 3000, 16, 20}, {}, nothing, {.dropout = 0.3});
  check("five queries", {1, 2, 5, 600, 32, 16}, Mask::causal(), future(5, 600));
  check("eight queries", {2, 1, 8, 70, 64, 6}, Mask::causal(), future(8, 70));
  check("nine queries", {2, 1, 9, 70, 64, 6}, Mask::causal(), future(9, 70));
}

// Like a cache that grows by one token at a time: memory after the last key is not read.
TEST_CASE_TEMPLATE("A query attends to keys and values in arrays with spare capacity", T, float, double) {
  constexpr std::size_t batch = 2, heads = 3, capacity = 700, width = 32;
  tg::manual_seed(5);
  for (const std::size_t queries : {1, 4})
    for (const std::size_t keys : {4, 257, 700}) {
      CAPTURE(queries);
      CAPTURE(keys);
      const tg::Array<T> q = tg::normal<T>({batch, heads, queries, width});
      const tg::Array<T> k = tg::normal<T>({batch, heads, keys, width}), v = tg::normal<T>({batch, heads, keys, width});
      tg::Array<T> roomy_k(tg::Shape{batch, heads, capacity, width}, std::numeric_limits<T>::quiet_NaN());
      tg::Array<T> roomy_v = roomy_k;
      const std::size_t head = keys * width;
      for (std::size_t i = 0; i < batch * heads; ++i) {
        std::copy_n(k.data() + i * head, head, roomy_k.data() + i * capacity * width);
        std::copy_n(v.data() + i * head, head, roomy_v.data() + i * capacity * width);
      }
      const tg::detail::HeadLayout few{queries, width, heads * queries * width, queries * width, width};
      const tg::detail::HeadLayout many{keys, width, heads * capacity * width, capacity * width, width};
      tg::Array<T> out(q.shape(), std::numeric_limits<T>::quiet_NaN()), statistics(tg::Shape{batch, heads, queries, 2});
      const T scale = 1 / std::sqrt(static_cast<T>(width));
      tg::detail::Attention<T>{
          {batch, heads, 1, few, many, many, few}, scale, 0, 0, {"test", Mask::causal(), batch, heads, queries, keys}}
          .forward(q.data(), roomy_k.data(), roomy_v.data(), out.data(), statistics.data());
      check_close(out, tg::scaled_dot_product_attention<T>(q, k, v, Mask::causal()).value(), 1e-6);
    }
}

TEST_CASE("Grouped-query attention matches its definition") {
  check("one of each", {1, 2, 1, 1, 1, 1, 2}, {}, nothing);
  check("small", {2, 6, 5, 7, 4, 3, 2}, {}, nothing);
  check("one group", {2, 3, 5, 7, 4, 3, 3}, {}, nothing, {.scale = -0.7});
  check("two strips and tiles", {2, 4, 65, 257, 4, 6, 2}, {}, nothing);
  check("one group, cut into parts", {1, 8, 150, 300, 16, 12, 8}, {}, nothing);
  check("one group, cut into parts, causal", {1, 3, 250, 300, 16, 12, 3}, Mask::causal(), future(250, 300));
  check("three groups, more queries", {1, 6, 250, 120, 16, 12, 2}, Mask::causal(), future(250, 120), {.dropout = 0.2});
  check("not copied", {1, 4, 130, 300, 64, 60, 2}, Mask::causal(), future(130, 300));
  check("long strips", {1, 2, 1100, 270, 3, 2, 2}, Mask::causal(), future(1100, 270));
  check("one query", {2, 8, 1, 600, 32, 16, 4}, Mask::causal(), future(1, 600));
  check("one query, one group", {1, 12, 1, 1500, 16, 12, 12}, {}, nothing);
  // Heads of a group see different keys: the first none, each later one more than the one before.
  const Sizes n{2, 4, 70, 300, 4, 3, 4};
  const auto of_head = [](auto, std::size_t h, auto, std::size_t s) { return s < h * 90 ? 0 : -kInfinity; };
  Array bias(tg::Shape{1, 4, 1, 300});
  for (std::size_t i = 0; i < bias.size(); ++i) bias.data()[i] = of_head(0, i / 300, 0, i % 300);
  check("a mask for each head", n, Mask::additive(bias), of_head);
  tg::IntArray lengths(tg::Shape{2, 70});
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths.data()[i] = static_cast<std::int64_t>(i * 37 % 271);
  check("lengths", n, Mask::valid_lens(lengths),
        [&](auto b, auto, auto t, auto s) { return static_cast<std::int64_t>(s) < lengths(b, t) ? 0 : -kInfinity; });
}

TEST_CASE("Masked attention matches its definition for masks of every shape, over several tiles") {
  const Sizes n{2, 3, 70, 270, 4, 3};
  const std::vector<tg::Shape> shapes{{270},          {70, 270},       {70, 1},         {1, 270},
                                      {2, 1, 1, 270}, {2, 3, 70, 270}, {1, 3, 70, 270}, {2, 1, 70, 270},
                                      {2, 3, 70, 1},  {1, 3, 1, 1},    {1, 70, 270},    {1}};
  for (const tg::Shape& shape : shapes) {
    const auto at = [&](auto b, auto h, auto t, auto s) {  // index of a score's element in the mask
      const std::size_t index[] = {b, h, t, s};
      std::size_t place = 0;
      for (std::size_t i = 0; i < shape.size(); ++i)
        place = place * shape[i] + (shape[i] == 1 ? 0 : index[4 - shape.size() + i]);
      return place;
    };
    tg::BoolArray allowed(shape);
    Array bias(shape);
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      allowed.data()[i] = seen(0, 0, i / 270, i % 270);
      bias.data()[i] = tg::random_uniform(1, i) < 0.3 ? -kInfinity : 4 * tg::random_uniform(2, i);
    }
    check("boolean " + tg::to_string(shape), n, Mask::boolean(allowed),
          [&](auto b, auto h, auto t, auto s) { return allowed.data()[at(b, h, t, s)] ? 0 : -kInfinity; });
    check("additive " + tg::to_string(shape), n, Mask::additive(bias),
          [&](auto b, auto h, auto t, auto s) { return bias.data()[at(b, h, t, s)]; });
  }
}

TEST_CASE("Attention over a sparse mask matches its definition, if some tiles and queries see no key") {
  const auto is_seen = [](std::size_t t, std::size_t s) { return tg::random_uniform(3, t * 600 + s) < 0.002; };
  tg::BoolArray sparse(tg::Shape{130, 600});
  for (std::size_t i = 0; i < sparse.size(); ++i) sparse.data()[i] = is_seen(i / 600, i % 600);
  check("sparse", {1, 2, 130, 600, 8, 5}, Mask::boolean(sparse),
        [&](auto, auto, auto t, auto s) { return is_seen(t, s) ? 0 : -kInfinity; });
}

TEST_CASE("Attention over valid lengths and padding matches its definition, with fully masked entries and strips") {
  const Sizes n{3, 2, 140, 300, 4, 3};
  tg::IntArray lengths(tg::Shape{3, 140}), of_entries{0, 299, 1000};
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths.data()[i] = static_cast<std::int64_t>(i * 37 % 301);
  for (std::size_t t = 0; t < 70; ++t) lengths(1, t) = 0;  // more than one strip
  const auto hidden = [](std::int64_t length, std::size_t s) {
    return static_cast<std::int64_t>(s) < length ? 0 : -kInfinity;
  };
  check("lengths of queries", n, Mask::valid_lens(lengths),
        [&](auto b, auto, auto t, auto s) { return hidden(lengths(b, t), s); });
  check("lengths of entries", n, Mask::valid_lens(of_entries),
        [&](auto b, auto, auto, auto s) { return hidden(of_entries(b), s); });
  tg::BoolArray keep(tg::Shape{3, 300});
  for (std::size_t i = 0; i < keep.size(); ++i)
    keep.data()[i] = i >= 300 && seen(0, 0, 0, i);  // none of the first batch entry
  check("padding", n, Mask::key_padding(keep), [&](auto b, auto, auto, auto s) { return keep(b, s) ? 0 : -kInfinity; });
  check("all of them", n, Mask::valid_lens(lengths) & Mask::causal() & Mask::key_padding(keep),
        [&](auto b, auto h, auto t, auto s) {
          return hidden(lengths(b, t), s) + future(n.queries, n.keys)(b, h, t, s) + (keep(b, s) ? 0 : -kInfinity);
        },
        {.dropout = 0.3});
}

TEST_CASE("Attention is accurate in float for scores of 10,000") {
  // Scores, up to 20,000, are exact in float. Some keys give equal or nearly equal scores.
  const Array queries{{100, -100, 100, 64}, {-100, 100, 50, -100}, {-100, 100, 50, -100}, {1, 0, -2, 100}};
  const Array keys{{100, -100, 100, 100},
                   {-100, 100, 0, -100},
                   {-100, 100, 0.015625f, -100},
                   {100.015625f, -100, 100, 100},
                   {-100, 100, 0, -100}};
  // 1,500 keys form several tiles: the largest score of some queries is in the first, of others in a later one.
  for (const std::size_t times : {1, 300})
    for (const bool causal : {false, true})
      for (const bool heads_side_by_side : {false, true}) {
        INFO("times = ", times, ", causal = ", causal, ", heads_side_by_side = ", heads_side_by_side);
        tg::manual_seed(9);
        const Sizes n{1, 2, 4, 5 * times, 4, 2};
        const tg::Tensor<double> all_keys = tg::repeat_interleave(tg::Tensor<double>(keys), times, 0);
        const std::vector<Array> inputs{tg::repeat(tg::Tensor<double>(queries), {1, 2, 1, 1}).value(),
                                        tg::repeat(all_keys, {1, 2, 1, 1}).value(),
                                        tg::uniform<float>({1, 2, n.keys, 2}, -1, 1)};
        const Array dout = tg::uniform<float>({1, 2, 4, 2}, -1, 1);
        const Bias bias = causal ? future(4, n.keys) : Bias(nothing);
        const Mask mask = causal ? Mask::causal() : Mask::none();
        const Results expected = by_definition(n, inputs[0], inputs[1], inputs[2], dout, bias, {}, 0);
        const Results actual = at_once<float>(n, inputs, dout, mask, {}, heads_side_by_side);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const double size = i == 1 || i == 2 ? 100 : 1;  // dQ and dK are sums of numbers up to 100
          check_close(actual[i] / size, expected[i] / size, 1e-6);
        }
      }
}

TEST_CASE("Forward and backward drop the same weights, in every tile, head and entry") {
  check("small", {2, 3, 5, 7, 4, 3}, {}, nothing, {.dropout = 0.5});
  check("tiles", {2, 2, 70, 300, 4, 3}, {}, nothing, {.dropout = 0.25});
  check("tiles under a mask", {2, 2, 70, 300, 4, 3}, Mask::causal(), future(70, 300), {.dropout = 0.25, .scale = 0.4});
}

TEST_CASE("NaN in masked positions does not reach the output") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(tg::masked_softmax(tg::Tensor<double>(Array{{nan, 1, 1}}), Mask::boolean({false, true, true})).value() ==
        Array{{0, 0.5, 0.5}});
  CHECK(tg::masked_softmax(tg::Tensor<double>(Array{{1, 1, nan}}), Mask::valid_lens({2})).value() ==
        Array{{0.5, 0.5, 0}});
  tg::Parameter<double> q(Array{{1, 2}, {3, 4}}), k(Array{{1, 1}, {nan, nan}, {0, 1}}),
      v(Array{{1, 4}, {2, 5}, {3, 6}});
  tg::Tape tape;
  const auto y = tg::scaled_dot_product_attention(q, k, v, Mask::boolean({true, false, true}));
  for (const double x : y.value()) CHECK(std::isfinite(x));
}
