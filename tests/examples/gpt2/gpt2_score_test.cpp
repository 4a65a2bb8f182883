// The perplexity of a text longer than the model's context.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../../../examples/gpt2/pretrained.hpp"
#include "../../../examples/gpt2/score.hpp"
#include "../../gpt2/checkpoint_folder.hpp"
#include "temporary_folder.hpp"

namespace tg = tapegrad;

TEST_CASE("Windows score each id except the first once, after at least half a context") {
  for (const std::size_t context : {1, 2, 3, 8, 9})
    for (std::size_t size = 2; size < 60; ++size) {
      CAPTURE(context);
      CAPTURE(size);
      std::vector<int> scored(size, 0);
      const std::vector<Window> windows = windows_of(size, context);
      for (const Window& window : windows) {
        REQUIRE(window.begin < window.end);
        REQUIRE(window.end < size);
        CHECK(window.end - window.begin <= context);
        REQUIRE(window.scored >= 1);
        for (std::size_t i = window.end + 1 - window.scored; i <= window.end; ++i) {
          ++scored[i];
          const std::size_t before = i - window.begin;  // number of ids the model sees before this one
          CHECK(before >= std::min(i, std::max<std::size_t>(1, (context + 1) / 2)));
        }
      }
      CHECK(scored.front() == 0);
      CHECK(std::all_of(scored.begin() + 1, scored.end(), [](int times) { return times == 1; }));
      if (size <= context + 1) CHECK(windows.size() == 1);
    }
}

TEST_CASE("A score is the sum of each id's loss given the earlier ids in its window") {
  const TemporaryFolder folder;
  CheckpointFolder("gpt2").write(folder / "model");
  const Pretrained read = with_weights(read_description(folder / "model"), folder / "model");
  for (const std::size_t size : {2, 9, 25, 26, 100}) {
    CAPTURE(size);
    std::vector<std::int64_t> ids(size);
    for (std::size_t i = 0; i < size; ++i) ids[i] = static_cast<std::int64_t>(384 * tg::random_uniform(3, i));
    constexpr std::size_t context = 24;
    double expected = 0;  // the simplest way: each id separately, its whole context recomputed
    for (std::size_t i = 1; i < size; ++i) {
      // The first window ends at 24; each later one ends 12 further and begins 24 before its end.
      const std::size_t steps = i <= context ? 0 : (i - context + 11) / 12;
      const std::size_t end = std::min(size - 1, context + 12 * steps), begin = end < context ? 0 : end - context;
      tg::IntArray seen(tg::Shape{1, i - begin});
      std::copy(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(i),
                seen.begin());
      const tg::Array<float> logits = read.model(seen).value();
      double sum = 0;
      const std::size_t last = i - begin - 1;
      for (std::size_t v = 0; v < 384; ++v) sum += std::exp(double(logits(0, last, v)));
      expected += std::log(sum) - double(logits(0, last, static_cast<std::size_t>(ids[i])));
    }
    std::size_t reported = 0;
    const Score all = score(read.model, context, ids, [&](std::size_t, const Score& of) { reported += of.tokens; });
    CHECK(all.loss == doctest::Approx(expected).epsilon(1e-5));
    CHECK(all.tokens == size - 1);
    CHECK(reported == size - 1);
  }
}
