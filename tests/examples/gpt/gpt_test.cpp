#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <paths.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "../../../examples/gpt/model.hpp"
#include "../../../examples/gpt/pieces.hpp"
#include "../../operations/table.hpp"
#include "close.hpp"

namespace tg = tapegrad;

TEST_CASE_TEMPLATE("The language model's loss and gradients match PyTorch, with one head and with eight", T, float,
                   double) {
  constexpr std::size_t vocabulary = 5, batch = 3, time = 6, width = 8;  // as in fixtures/make_language_model.py
  std::ifstream file(TAPEGRAD_SOURCES "/tests/fixtures/language_model.json");
  const auto cases = nlohmann::json::parse(file);
  REQUIRE(cases.size() == 3);
  for (const auto& expected : cases) {
    CAPTURE(expected["heads"]);
    CAPTURE(expected["positions"]);
    LanguageModel<T> model(
        vocabulary, {.heads = expected["heads"], .width = width, .context = time, .positions = expected["positions"]});
    std::uint64_t key = 0;
    for (const auto& parameter : tg::parameters(model))
      parameter->set_value(operations::numbers<T>(operations::draw(parameter->shape()), key++));
    tg::IntArray ids(tg::Shape{batch, time}), next(tg::Shape{batch, time});
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids.data()[i] = static_cast<std::int64_t>(vocabulary * tg::random_uniform(100, i));
    for (std::size_t i = 0; i < ids.size(); ++i) next.data()[i] = ids.data()[(i + 1) % ids.size()];

    const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-12;
    tg::Tape tape;
    const auto loss = tg::cross_entropy(model(ids), next);
    loss.backward();
    CHECK(std::abs(static_cast<double>(loss.item()) - double(expected["loss"])) < tolerance);
    CHECK(tg::parameters(model).size() == expected["gradients"].size());
    for (const auto& named : tg::named_parameters(model)) {
      const auto& name = named.first;
      const auto& parameter = named.second;
      CAPTURE(name);
      const std::vector<double> numbers = expected["gradients"][name];
      tg::Array<double> gradient(parameter->shape());
      REQUIRE(numbers.size() == gradient.size());
      std::copy(numbers.begin(), numbers.end(), gradient.begin());
      check_close(parameter->grad(), gradient, tolerance);
    }
  }
}

namespace {

/// The tutorial's model, and a GPT with all optional parts.
const ModelOptions both_models[] = {
    {.layers = 0, .heads = 2, .width = 8, .context = 5, .positions = Positions::learned},
    {.layers = 2, .heads = 2, .width = 8, .context = 5, .positions = Positions::learned, .tie = true, .dropout = 0.5}};

}  // namespace

TEST_CASE("The language model with its weights predicts the same, and no character attends to a later one") {
  for (const ModelOptions& options : both_models) {
    LanguageModel<double> model(9, options);
    tg::eval(model);
    const tg::IntArray ids{{1, 2, 3, 4, 5}, {5, 4, 3, 8, 7}};
    const auto [logits, weights] = model.with_weights(ids);
    check_close(logits.value(), model(ids).value(), 1e-13);
    REQUIRE(weights.size() == std::max<std::size_t>(1, options.layers));
    for (const auto& of_one : weights) {
      REQUIRE(of_one.shape() == tg::Shape{2, 2, 5, 5});
      for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t h = 0; h < 2; ++h)
          for (std::size_t t = 0; t < 5; ++t)
            for (std::size_t s = 0; s < 5; ++s) CHECK((of_one.value()(b, h, t, s) > 0) == (s <= t));
    }
  }
}

TEST_CASE("The language model with its caches predicts the same, in pieces of any length") {
  for (const ModelOptions& options : both_models) {
    LanguageModel<double> model(9, options);
    tg::eval(model);
    const auto whole = model({{1, 2, 3, 4, 5}});
    LanguageModel<double>::Caches caches;
    check_close(model({{1, 2}}, caches).value(), tg::narrow(whole, 1, 0, 2).value(), 1e-12);
    check_close(model(tg::int_array({{3}}), caches).value(), tg::narrow(whole, 1, 2, 1).value(), 1e-12);
    check_close(model({{4, 5}}, caches).value(), tg::narrow(whole, 1, 3, 2).value(), 1e-12);
  }
}

TEST_CASE("The language model's losses have the same bits with and without recomputed blocks") {
  const tg::IntArray ids{{1, 2, 3, 4, 5}, {5, 4, 3, 8, 7}}, next{{2, 3, 4, 5, 6}, {4, 3, 8, 7, 0}};
  std::size_t kept[2];
  const auto trained = [&](const ModelOptions& options, bool recompute) {
    tg::manual_seed(3);
    LanguageModel<> model(9, options);
    tg::AdamW<float> optimizer(tg::parameters(model), {.lr = 0.01});
    std::vector<float> losses;
    for (int step = 0; step < 5; ++step) {
      const tg::Tape tape;
      optimizer.zero_grad();
      const auto loss = tg::cross_entropy(model(ids, recompute), next);
      kept[recompute] = tape.size();
      loss.backward();
      optimizer.step();
      losses.push_back(loss.item());
    }
    return losses;
  };
  for (const ModelOptions& options : both_models) {
    CHECK(trained(options, true) == trained(options, false));
    CHECK(kept[true] < kept[false]);
  }
}

TEST_CASE("A tied language model has no weight of its own in the head, and one without norms has no LayerNorm") {
  const auto has = [](const ModelOptions& options, const std::string& part) {
    LanguageModel<> model(9, options);
    for (const auto& [name, parameter] : tg::named_parameters(model))
      if (name.find(part) != name.npos) return true;
    return false;
  };
  CHECK(has({.layers = 1, .width = 8, .context = 5}, "head."));
  CHECK(!has({.layers = 1, .width = 8, .context = 5, .tie = true}, "head."));
  CHECK(has({.layers = 1, .width = 8, .context = 5}, "norm"));
  CHECK(!has({.layers = 1, .width = 8, .context = 5, .norm = Norm::none}, "norm"));
}

// ---- training texts in pieces ---------------------------------------------------------------------------------------

namespace {

/// A text in which each id is its own position.
PackedIds counting(std::size_t size) {
  PackedIds text(size);
  for (std::size_t i = 0; i < size; ++i) text.push_back(static_cast<std::int64_t>(i));
  return text;
}

/// The pieces of one epoch, in order.
std::vector<std::vector<std::int64_t>> epoch(Pieces& pieces, examples::Place& place) {
  std::vector<std::vector<std::int64_t>> rows;
  do {
    const auto batch = pieces.next(place);
    CHECK(batch.tokens == batch.ids.size());
    CHECK(std::all_of(batch.keep.begin(), batch.keep.end(), [](bool keep) { return keep; }));
    for (std::size_t row = 0; row < batch.ids.shape()[0]; ++row) {
      auto& piece = rows.emplace_back();
      for (std::size_t t = 0; t < batch.ids.shape()[1]; ++t) piece.push_back(batch.ids(row, t));
    }
  } while (place.batches_left > 0);
  return rows;
}

}  // namespace

TEST_CASE("The pieces of an epoch are adjacent, in random order, and cut elsewhere in the next epoch") {
  tg::manual_seed(1);
  constexpr std::size_t size = 100, length = 8;
  const PackedIds text = counting(size);
  Pieces pieces(text, length, 3);
  examples::Place place;
  std::set<std::int64_t> begins;
  for (int i = 0; i < 50; ++i) {
    auto rows = epoch(pieces, place);
    CHECK(!std::is_sorted(rows.begin(), rows.end()));
    std::sort(rows.begin(), rows.end());
    REQUIRE(rows.size() == 13);  // 14 would fill the text and leave no room to shift
    begins.insert(rows.front().front());
    std::int64_t expected = rows.front().front();
    for (const auto& piece : rows) {
      REQUIRE(piece.size() == length);
      for (std::size_t t = 0; t < length; ++t) REQUIRE(piece[t] == expected + static_cast<std::int64_t>(t));
      expected = piece.back();  // a piece's last id begins the next: each id is predicted once
    }
    CHECK(expected < static_cast<std::int64_t>(size));
  }
  CHECK(*begins.begin() == 0);
  CHECK(*begins.rbegin() == size - 1 - 13 * (length - 1));  // some epoch learns the last id, too
}

TEST_CASE("Pieces continue in the middle of an epoch as without an interruption") {
  tg::manual_seed(2);
  const PackedIds text = counting(100);
  Pieces pieces(text, 8, 3);
  examples::Place place;
  for (int i = 0; i < 7; ++i) pieces.next(place);
  CHECK(place.batches_left > 0);

  examples::Place kept = place;
  const tg::Generator generator = tg::default_generator();
  const auto rest = epoch(pieces, place), after = epoch(pieces, place);
  Pieces others(text, 8, 3);
  tg::default_generator() = generator;
  CHECK(epoch(others, kept) == rest);
  CHECK(epoch(others, kept) == after);
}

TEST_CASE("A text shorter than a piece, or as long, is one piece") {
  for (const std::size_t size : {2, 7, 8}) {
    const PackedIds text = counting(size);
    Pieces pieces(text, 8, 3);
    examples::Place place;
    const auto rows = epoch(pieces, place);
    REQUIRE(rows.size() == 1);
    CHECK(rows.front().size() == size);
    CHECK(rows.front().front() == 0);
  }
}

TEST_CASE("A text shorter than two pieces has one piece per epoch, at a changing position") {
  const PackedIds text = counting(15);
  Pieces pieces(text, 8, 3);
  examples::Place place;
  std::set<std::int64_t> begins;
  for (int i = 0; i < 100; ++i) {
    const auto rows = epoch(pieces, place);
    REQUIRE(rows.size() == 1);
    begins.insert(rows.front().front());
  }
  CHECK(begins == std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("Pieces of texts predict each id but a text's first once") {
  for (const std::size_t size : {1, 2, 7, 8, 9, 15, 16, 100}) {
    CAPTURE(size);
    const auto pieces = cut({counting(size), counting(3)}, 8);
    std::vector<std::int64_t> said;
    for (const auto& piece : pieces) {
      CHECK(piece.size() >= 2);
      CHECK(piece.size() <= 8);
      said.insert(said.end(), piece.begin() + 1, piece.end());
    }
    std::vector<std::int64_t> expected;
    for (std::size_t i = 1; i < size; ++i) expected.push_back(static_cast<std::int64_t>(i));
    expected.insert(expected.end(), {1, 2});
    CHECK(said == expected);
  }
}
