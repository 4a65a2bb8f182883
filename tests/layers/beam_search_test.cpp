#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "in_double.hpp"
#include "refused.hpp"
#include "special_values.hpp"

namespace {

using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kBegin = 1, kEnd = 0;
constexpr std::size_t kIds = 3;

// Log-probabilities of every id after a prefix, random but always the same.
std::vector<double> logs_after(const Ids& prefix, std::uint64_t seed) {
  std::uint64_t key = seed;
  for (const std::int64_t id : prefix) key = key * kIds + static_cast<std::uint64_t>(id) + 1;
  std::vector<double> logs(kIds);
  double sum = 0;
  for (std::size_t id = 0; id < kIds; ++id) sum += logs[id] = 0.05 + tg::random_uniform(key, id);
  for (double& log : logs) log = std::log(log / sum);
  return logs;
}

// The step of a batch: entry b has the seed `seed` + b. Each row's entry is carried from call to call like a cache.
auto step_of(std::uint64_t seed) {
  return [seed, entries = Ids()](const tg::IntArray& prefixes, const tg::IntArray& rows) mutable {
    const Ids before = entries;
    entries.clear();
    Array logs(tg::Shape{prefixes.shape()[0], kIds});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      entries.push_back(before.empty() ? rows(i) : before.at(static_cast<std::size_t>(rows(i))));
      Ids prefix;
      for (std::size_t t = 0; t < prefixes.shape()[1]; ++t) prefix.push_back(prefixes(i, t));
      std::ranges::copy(logs_after(prefix, seed + static_cast<std::uint64_t>(entries.back())), &logs(i, 0));
    }
    return logs;
  };
}

// The search by sorting all extensions of the kept sequences.
std::vector<tg::Hypothesis> by_sorting(const tg::BeamSearchOptions& options, std::uint64_t seed) {
  struct Kept {
    Ids prefix;
    double sum;
  };
  std::vector<Kept> kept{{{kBegin}, 0}};
  std::vector<tg::Hypothesis> found;
  const auto add = [&](const Kept& one, std::ptrdiff_t ends) {  // ends: 1 if its last id is the end, else 0
    const auto summands = static_cast<double>(one.prefix.size() - 1);
    found.push_back({{one.prefix.begin() + 1, one.prefix.end() - ends},
                     one.sum,
                     one.sum / std::pow((5 + summands) / 6, options.length_penalty),
                     ends == 1});
  };
  for (std::size_t length = 0; length < options.max_length; ++length) {
    std::vector<Kept> extended;
    for (const Kept& one : kept)
      for (std::size_t id = 0; id < kIds; ++id) {
        extended.push_back({one.prefix, one.sum + logs_after(one.prefix, seed)[id]});
        extended.back().prefix.push_back(static_cast<std::int64_t>(id));
      }
    std::ranges::sort(extended, std::greater<>(), &Kept::sum);
    extended.resize(std::min(extended.size(), options.beams - found.size()));
    kept.clear();
    for (const Kept& one : extended) one.prefix.back() == kEnd ? add(one, 1) : kept.push_back(one);
  }
  for (const Kept& one : kept) add(one, 0);
  std::ranges::sort(found, std::greater<>(), &tg::Hypothesis::score);
  return found;
}

void check_same(const std::vector<tg::Hypothesis>& actual, const std::vector<tg::Hypothesis>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CHECK(actual[i].ids == expected[i].ids);
    CHECK(actual[i].log_probability == doctest::Approx(expected[i].log_probability).epsilon(1e-12));
    CHECK(actual[i].score == doctest::Approx(expected[i].score).epsilon(1e-12));
    CHECK(actual[i].ended == expected[i].ended);
  }
}

// The same log-probabilities after every prefix.
auto always(const std::vector<double>& logs) {
  return [logs](const tg::IntArray& prefixes) {
    Array all(tg::Shape{prefixes.shape()[0], logs.size()});
    for (std::size_t i = 0; i < all.size(); ++i) all.data()[i] = logs[i % logs.size()];
    return all;
  };
}

}  // namespace

TEST_CASE("The search keeps the likeliest sequences of all in each step, with enough beams every sequence") {
  for (const std::size_t beams : {1, 2, 3, 5, 200})
    for (const double alpha : {0.0, 0.6, 1.0, -0.5})
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("beams = ", beams, ", alpha = ", alpha, ", seed = ", seed);
        const tg::BeamSearchOptions options{
            .begin = kBegin, .end = kEnd, .beams = beams, .max_length = 6, .length_penalty = alpha};
        auto step = step_of(seed);
        const auto found = tg::beam_search(step, options);
        check_same(found, by_sorting(options, seed));
        // With two ids besides the end: 2^n sequences of n ids that end, for n < 6, and 2^6 that do not.
        if (beams == 200) CHECK(found.size() == 63 + 64);
      }
}

TEST_CASE("A batch finds for each entry what the entry finds alone") {
  for (const std::size_t beams : {1, 2, 3, 50}) {
    const tg::BeamSearchOptions options{.begin = kBegin, .end = kEnd, .beams = beams, .max_length = 7};
    auto step = step_of(10);
    const auto together = tg::beam_search(step, 4, options);
    REQUIRE(together.size() == 4);
    for (std::uint64_t b = 0; b < 4; ++b) {
      auto alone = step_of(10 + b);
      check_same(together[b], tg::beam_search(alone, options));
    }
  }
}

TEST_CASE("Ids of probability 0 are never chosen, equal sequences come in the order of their ids") {
  const auto options = [](std::size_t beams, std::size_t length) {
    return tg::BeamSearchOptions{.begin = 9, .end = 2, .beams = beams, .max_length = length};
  };
  const auto two = tg::beam_search(always({-1, -1, -kInfinity}), options(8, 2));
  REQUIRE(two.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(two[i].ids == Ids{static_cast<std::int64_t>(i / 2), static_cast<std::int64_t>(i % 2)});
    CHECK(two[i].log_probability == -2);
    CHECK_FALSE(two[i].ended);
  }
  CHECK(tg::beam_search(always({-1, -1, -1}), options(3, 1)).front().ids.empty());
  CHECK(tg::beam_search(always({-kInfinity, -kInfinity, -kInfinity}), options(2, 3)).empty());
}

TEST_CASE("Steps may return float, and tensors' values") {
  const auto step = [](const tg::IntArray& prefixes) {
    return tg::log_softmax(tg::Tensor<float>(tg::Array<float>(tg::Shape{prefixes.shape()[0], 3}, 1)), -1).value();
  };
  const auto found = tg::beam_search(step, {.begin = 1, .end = 0, .beams = 2, .max_length = 3});
  REQUIRE(found.size() == 2);
  CHECK(found[0].ids.empty());
  CHECK(found[0].log_probability == doctest::Approx(std::log(1.0 / 3)));
}

TEST_CASE("A decoder with a cache finds what it finds without") {
  struct Model {
    tg::Embedding<double> embedding{6, 8};
    tg::TransformerDecoderBlock<double> decoder{8, 2, {.rotary_base = 100}};
    tg::Linear<double> head{8, 6};
    TAPEGRAD_FIELDS(embedding, decoder, head)
  };
  tg::manual_seed(8);
  Model model;
  for (const auto& parameter : tg::parameters(model))
    parameter->set_value(tg::normal<double>(parameter->shape(), 0, 0.7));
  const Array memory = tg::normal<double>({3, 4, 8});
  const tg::BeamSearchOptions options{.begin = 1, .end = 2, .beams = 3, .max_length = 8, .length_penalty = 0.6};
  const auto last_logs = [&](const Tensor& x) { return tg::log_softmax(model.head(tg::select(x, 1, -1)), -1).value(); };

  Array seen = memory;
  const auto plain = tg::beam_search(
      [&](const tg::IntArray& prefixes, const tg::IntArray& rows) {
        seen = tg::rows(seen, rows);
        return last_logs(model.decoder(model.embedding(prefixes), seen, tg::AttentionMask::causal()));
      },
      3, options);
  tg::DecoderCache<double> cache(model.decoder, memory);
  const auto cached = tg::beam_search(
      [&](const tg::IntArray& prefixes, const tg::IntArray& rows) {
        cache.select(rows);
        tg::IntArray last(rows.shape());
        for (std::size_t i = 0; i < rows.size(); ++i) last(i) = prefixes(i, prefixes.shape()[1] - 1);
        return last_logs(model.decoder(tg::unsqueeze(model.embedding(last), 1), cache));
      },
      3, options);
  for (std::size_t b = 0; b < 3; ++b) check_same(cached[b], plain[b]);
}

TEST_CASE("Invalid options and steps are refused") {
  const auto refused = [](const std::string& text, std::size_t batch, const tg::BeamSearchOptions& options) {
    check_refused("beam_search", text, [&] { tg::beam_search(always({-1, -1}), batch, options); });
  };
  refused("beams", 1, {.begin = 1, .end = 0, .beams = 0, .max_length = 2});
  refused("max_length", 1, {.begin = 1, .end = 0});
  refused("batch", 0, {.begin = 1, .end = 0, .max_length = 2});
  refused("length_penalty", 1, {.begin = 1, .end = 0, .max_length = 2, .length_penalty = kInfinity});
  refused("end in the vocabulary of 2 ids, got 2", 1, {.begin = 1, .end = 2, .max_length = 2});
  refused("end in the vocabulary of 2 ids, got -1", 1, {.begin = 1, .end = -1, .max_length = 2});
  const tg::BeamSearchOptions options{.begin = 1, .end = 0, .max_length = 2};
  check_refused("beam_search", "got 2 for id 1; use tg::log_softmax", [&] {
    tg::beam_search(always({-1, 2}), options);
  });
  check_refused("beam_search", "nan for id 1", [&] { tg::beam_search(always({-1, kNaN}), options); });
  check_refused("beam_search", "(1, vocabulary) from step, got (2, 1)", [&] {
    tg::beam_search([](const tg::IntArray&) { return Array(tg::Shape{2, 1}); }, options);
  });
}
