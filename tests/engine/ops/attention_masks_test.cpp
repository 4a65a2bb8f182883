/// Which keys each AttentionMask lets a query attend to, alone and combined. With scores of 0 all visible keys get
/// equal weights, so a row of weights shows the visible keys. The table of operations compares every kind with PyTorch.
#include <map>

#include "close.hpp"
#include "refused.hpp"
#include "special_values.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Mask = tg::AttentionMask;
using Tensor = tg::Tensor<double>;

namespace {

Array weights(const tg::Shape& shape, const Mask& mask) {
  return tg::masked_softmax(Tensor(Array(shape, 0.0)), mask).value();
}

// Every kind of mask for scores of shape (2, 2, 3, 4).
std::map<std::string, Mask> masks() {
  const double x = -kInfinity;
  Array column(tg::Shape{3, 1}, 0.0);
  column(2, 0) = x;
  return {
      {"none", Mask::none()},
      {"causal", Mask::causal()},
      {"key_padding", Mask::key_padding({{true, true, true, false}, {true, false, false, true}})},
      {"valid_lens (B)", Mask::valid_lens({3, 2})},
      {"valid_lens (B, T)", Mask::valid_lens({{1, 2, 4}, {4, 3, 1}})},
      {"boolean (T, S)",
       Mask::boolean({{true, true, false, true}, {false, true, true, true}, {true, true, true, true}})},
      {"boolean (S)", Mask::boolean({true, true, true, false})},
      {"additive (T, S)", Mask::additive({{0, x, 0, 0}, {0, 0, x, 0}, {0, 0, 0, x}})},
      {"additive (T, 1)", Mask::additive(column)},
  };
}

}  // namespace

TEST_CASE("A causal mask shows all keys to the last query, and one key less to each query before it") {
  const double third = 1.0 / 3;
  check_close(weights({3, 3}, Mask::causal()), Array{{1, 0, 0}, {0.5, 0.5, 0}, {third, third, third}});
  check_close(weights({2, 4}, Mask::causal()), Array{{third, third, third, 0}, {0.25, 0.25, 0.25, 0.25}});
  check_close(weights({1, 4}, Mask::causal()), Array{{0.25, 0.25, 0.25, 0.25}});
  check_close(weights({3, 2}, Mask::causal()), Array{{0, 0}, {1, 0}, {0.5, 0.5}});  // the first query precedes all keys
  CHECK(weights({3, 0}, Mask::causal()).size() == 0);
  CHECK(weights({0, 3}, Mask::causal()).size() == 0);
}

TEST_CASE("A copy of a mask shares its arrays") {
  const Mask mask = Mask::boolean(tg::causal_mask(30, 30)) & Mask::additive(Array(tg::Shape{30, 30}, 0.0)) &
                    Mask::valid_lens(tg::IntArray{30});
  const std::ptrdiff_t before = tg::pool_blocks_in_use();
  const Mask copy = mask, joined = mask & Mask::causal() & Mask::none();
  CHECK(tg::pool_blocks_in_use() == before);
}

TEST_CASE("Masks joined with & show what all of them show, in any order") {
  const tg::Shape shape{2, 2, 3, 4};
  for (const auto& a : masks())
    for (const auto& b : masks()) {
      CAPTURE(a.first);
      CAPTURE(b.first);
      const Array seen_a = weights(shape, a.second), seen_b = weights(shape, b.second);
      const Array both = weights(shape, a.second & b.second), reversed = weights(shape, b.second & a.second);
      for (std::size_t i = 0; i < both.size(); ++i) {
        CAPTURE(i);
        CHECK((both.data()[i] != 0) == (seen_a.data()[i] != 0 && seen_b.data()[i] != 0));
        CHECK(both.data()[i] == reversed.data()[i]);
      }
    }
}

TEST_CASE("NaN does not count as masked: it reaches the result") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(tg::masked_softmax(Tensor(Array{{nan, nan}}), Mask::none()).value()(0, 0)));
  CHECK(std::isnan(tg::masked_softmax(Tensor(Array{{nan, 1}}), Mask::boolean({true, false})).value()(0, 0)));
  const Tensor q(Array{{nan, 1}}), k(Array{{1, 2}, {3, 4}});
  CHECK(std::isnan(tg::scaled_dot_product_attention(q, k, k).value()(0, 0)));
}

TEST_CASE("Masks of incompatible shapes are refused with the name of the function that made them") {
  check_refused("AttentionMask::key_padding", "got (3)", [] { Mask::key_padding({true, false, true}); });
  check_refused("AttentionMask::key_padding", "got (1, 1, 3)", [] { Mask::key_padding({{{true, false, true}}}); });
  check_refused("AttentionMask::valid_lens", "got ()", [] { Mask::valid_lens(tg::IntArray(3)); });
  check_refused("AttentionMask::valid_lens", "got (1, 1, 2)", [] { Mask::valid_lens({{{3, 1}}}); });
  check_refused("AttentionMask::boolean", "got (1, 1, 1, 1, 2)", [] {
    Mask::boolean(tg::BoolArray({1, 1, 1, 1, 2}, true));
  });
  check_refused("AttentionMask::boolean", "got (2, 3, 4); reshape one mask per batch entry to (B, 1, T, S)", [] {
    Mask::boolean(tg::BoolArray({2, 3, 4}, true));
  });
  check_refused("AttentionMask::additive", "got (1, 1, 1, 1, 2)", [] { Mask::additive(Array({1, 1, 1, 1, 2}, 0.0)); });
  check_refused("AttentionMask::additive", "got (2, 3, 4)", [] { Mask::additive(Array({2, 3, 4}, 0.0)); });
  check_refused("AttentionMask &", "(2, 3) and (2, 4)", [] {
    return Mask::boolean(tg::BoolArray({2, 3}, true)) & Mask::boolean(tg::BoolArray({2, 4}, true));
  });
}

TEST_CASE("Negative lengths are out of range") {
  CHECK_THROWS_WITH_AS(Mask::valid_lens({2, -1}), "[AttentionMask::valid_lens] expected lengths of at least 0, got -1",
                       std::out_of_range);
}
