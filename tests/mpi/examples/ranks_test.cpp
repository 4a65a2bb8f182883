// Dividing batches and random numbers among the ranks.
#include "../../../examples/common/ranks.hpp"

#include <tapegrad/mpi.hpp>
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace tg = tapegrad;

TEST_CASE("The ranks' parts do not overlap and cover everything") {
  const tg::mpi::Group ranks;
  for (const std::size_t count : {0u, 1u, 2u, 3u, 7u, 64u}) {
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), 0);
    tg::Array<double> taken(tg::Shape{count + 1}, 0.0);
    const auto part = examples::own_part(std::span<const std::size_t>(all));
    for (const std::size_t i : part) taken(i) = 1;
    taken(count) = double(part.size());
    taken = ranks.sum(std::move(taken));
    for (std::size_t i = 0; i < count; ++i) CHECK(taken(i) == 1);
    CHECK(taken(count) == double(count));
    CHECK(part.size() <= (count + ranks.size() - 1) / ranks.size());
  }
}

TEST_CASE("Each rank's own draws differ, and later common draws are equal") {
  const tg::mpi::Group ranks;
  tg::manual_seed(5);
  const auto is_the_same_on_all = [&](double draw) {
    return ranks.all(ranks.sum(draw) / double(ranks.size()) == draw);
  };
  double first = 0;
  {
    const examples::OwnDraws own(0);
    for (std::size_t i = 0; i < 1 + ranks.rank(); ++i) first = tg::uniform<double>({1}, 0, 1)(0);  // some draw more
    CHECK(is_the_same_on_all(first) == (ranks.size() == 1));
  }
  {
    const examples::OwnDraws own(1);  // for the next batch
    CHECK(tg::uniform<double>({1}, 0, 1)(0) != first);
  }
  CHECK(is_the_same_on_all(tg::uniform<double>({1}, 0, 1)(0)));
}
