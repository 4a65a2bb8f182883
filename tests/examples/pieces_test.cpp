#include "../../examples/gpt/pieces.hpp"

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace tg = tapegrad;

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
