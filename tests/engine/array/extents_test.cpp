/// External extents whose product exceeds any memory: operations refuse them by name before they write or draw
/// anything.
#include <cstddef>
#include <limits>

#include "../../../engine/array/internal/layout.hpp"
#include "refused.hpp"

namespace tg = tapegrad;
using tg::Shape;

namespace {

constexpr std::size_t kHuge = std::size_t{1} << 32;  // squared, it wraps around to 0
constexpr std::size_t kThird = 0x5555555555555556;   // times three, it wraps around to 2
constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();

// Expects "[operation] expected ...", nothing recorded and no random number drawn.
template <class Call> void check_refused(const std::string& operation, Call call) {
  check_refused_unchanged(operation, {}, call);
}

// Often of size 0, with any other extents.
template <class T> tg::Parameter<T> zeros(const Shape& shape) { return tg::Parameter<T>(tg::Array<T>(shape, T(0))); }

}  // namespace

TEST_CASE("Array shapes beyond the address space are refused with their extents and the limit") {
  using tg::detail::uninitialized;
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  CHECK(tg::detail::addressable({most}, 1));
  CHECK(tg::detail::addressable({most / 8}, 8));
  CHECK(tg::detail::addressable({0, most / 8}, 8));
  CHECK_FALSE(tg::detail::addressable({most + 1}, 1));
  CHECK_FALSE(tg::detail::addressable({most / 8 + 1}, 8));
  CHECK_FALSE(tg::detail::addressable({most / 4 + 1}, 4));
  CHECK_FALSE(tg::detail::addressable({kMax}, 1));
  CHECK_FALSE(tg::detail::addressable({kHuge, kHuge}, 1));
  CHECK_FALSE(tg::detail::addressable({3, kThird}, 1));
  CHECK_FALSE(tg::detail::addressable({kHuge, 1, kHuge, 0}, 1));  // the product without the 0 is too large
  CHECK_FALSE(tg::detail::addressable({0, kHuge, kHuge}, 1));
  CHECK_THROWS_WITH_AS(uninitialized<double>("op", {4294967296, 0, 4294967296}),
                       "[op] expected a shape of at most 1152921504606846975 elements, not counting "
                       "extents of 0, got (4294967296, 0, 4294967296)",
                       std::invalid_argument);
}

TEST_CASE("Masks and one-hot vectors beyond the address space are refused") {
  check_refused("causal_mask", [] { tg::causal_mask(kHuge, kHuge); });
  check_refused("causal_mask", [] { tg::causal_mask(kMax, kMax); });  // T - 1 with T = 0
  check_refused("causal_mask", [] { tg::causal_mask(0, kMax); });
  check_refused("one_hot", [] { tg::one_hot({0, 1, 2, 3}, std::size_t{1} << 62); });
  check_refused("one_hot", [] { tg::one_hot({0, 1, 2, 3}, kMax); });
  check_refused("one_hot", [] { tg::one_hot(tg::IntArray(Shape{0}), kMax); });
  check_refused("AttentionMask &", [] {
    using Mask = tg::AttentionMask;
    Mask::boolean(tg::BoolArray(Shape{kHuge, 1, 0, 1})) & Mask::boolean(tg::BoolArray(Shape{1, 1, 0, kHuge}));
  });
}

TEST_CASE_TEMPLATE("Random arrays and layers beyond the address space are refused before a key is drawn", T, float,
                   double) {
  check_refused("uniform", [] { tg::uniform<T>({kHuge, kHuge}, 0, 1); });
  check_refused("uniform", [] { tg::uniform<T>({kMax}, 0, 1); });
  check_refused("normal", [] { tg::normal<T>({3, kThird}); });
  check_refused("normal", [] { tg::normal<T>({0, kHuge, kHuge}); });
  check_refused("random_permutation", [] { tg::random_permutation(kMax); });
  check_refused("LayerNorm", [] { tg::LayerNorm<T>({65536, 65536, 65536, 65536}); });
  check_refused("RMSNorm", [] { tg::RMSNorm<T>({2147483647, 2147483647}); });
  const tg::SkipInitialization skip;
  check_refused("Linear", [] { tg::Linear<T>(2147483647, 2147483647); });
  check_refused("Embedding", [] { tg::Embedding<T>(2147483647, 2147483647); });
}

TEST_CASE_TEMPLATE("Views beyond the address space are refused", T, float, double) {
  const auto one = zeros<T>({1}), three = zeros<T>({3}), pair = zeros<T>({1, 1}), none = zeros<T>({0});
  check_refused("expand", [&] { tg::expand(pair, {kHuge, kHuge}); });
  check_refused("expand", [&] { tg::expand(one, {kHuge, kHuge, 1}); });
  check_refused("expand", [&] { tg::expand(none, {kHuge, kHuge, -1}); });
  check_refused("repeat", [&] { tg::repeat(three, {kThird}); });
  check_refused("repeat", [&] { tg::repeat(pair, {kHuge, kHuge}); });
  check_refused("repeat", [&] { tg::repeat(none, {kHuge, kHuge}); });
  check_refused("repeat", [&] { tg::repeat(three, {0, kHuge, kHuge}); });
  check_refused("repeat_interleave", [&] { tg::repeat_interleave(three, kThird, 0); });
  check_refused("repeat_interleave", [&] { tg::repeat_interleave(one, kMax, 0); });
  check_refused("repeat_interleave", [&] { tg::repeat_interleave(none, kMax, 0); });
}

TEST_CASE_TEMPLATE("reshape detects overflow in the product of the extents", T, float, double) {
  const auto one = zeros<T>({1}), three = zeros<T>({3}), six = zeros<T>({6}), none = zeros<T>({0, 3});
  check_refused("reshape", [&] { tg::reshape(none, {kHuge, kHuge}); });
  check_refused("reshape", [&] { tg::reshape(none, {kHuge, kHuge, 0}); });
  check_refused("reshape", [&] { tg::reshape(none, {kHuge, kHuge, -1}); });
  check_refused("reshape", [&] { tg::reshape(one, {7, 0x6DB6DB6DB6DB6DB7}); });
  check_refused("reshape", [&] { tg::reshape(three, {7, 0x6DB6DB6DB6DB6DB7, -1}); });
  check_refused("reshape", [&] { tg::reshape(six, {-1, 3, kThird}); });
  CHECK(tg::to_string(tg::reshape(none, {kHuge, 0}).shape()) == "(4294967296, 0)");
  CHECK(tg::to_string(tg::reshape(none, {kHuge, -1}).shape()) == "(4294967296, 0)");
}

TEST_CASE_TEMPLATE("Operations on empty arrays refuse results beyond the address space", T, float, double) {
  const auto long_and_empty = zeros<T>({std::size_t{1} << 59, 0});
  const std::vector<tg::Tensor<T>> many(16 / sizeof(T), long_and_empty);  // one too many
  check_refused("cat", [&] { tg::cat(many, 0); });
  check_refused("stack", [&] { tg::stack(many, 0); });
  // xtensor allows such an array because its size is 0.
  const auto deep = zeros<T>({kHuge, kHuge, 0});
  check_refused("sum", [&] { tg::sum(deep, {2}); });
  check_refused("sum", [&] { tg::sum(deep, {2}, tg::keepdims); });
  check_refused("argmax", [&] { tg::argmax(zeros<T>({1, kHuge, kHuge, 0}), 0); });

  const auto tall = zeros<T>({kHuge, 0}), wide = zeros<T>({0, kHuge});
  check_refused("matmul", [&] { tg::matmul(tall, wide); });
  check_refused("matmul", [&] { tg::matmul(zeros<T>({kHuge, 1, 1, 0}), zeros<T>({kHuge, 0, 1})); });
  check_refused("linear", [&] { tg::linear(tall, tall); });
  check_refused("einsum", [&] { tg::einsum("ai,aj->ij", wide, wide); });
  check_refused("add", [&] { zeros<T>({kHuge, 1, 0}) + zeros<T>({1, kHuge, 0}); });
  check_refused("where", [&] {
    tg::where(tg::BoolArray(Shape{1, kHuge, 0}), zeros<T>({kHuge, 1, 0}), zeros<T>({1, 1, 1}));
  });
  check_refused("embedding", [&] { tg::embedding(zeros<T>({0, kHuge}), tg::IntArray(Shape{0, kHuge})); });
  check_refused("embedding", [&] { tg::embedding(zeros<T>({0, kMax}), tg::IntArray(Shape{0})); });

  const auto queries = zeros<T>({kHuge, 0}), keys = zeros<T>({0, 0}), values = zeros<T>({0, kHuge});
  check_refused("scaled_dot_product_attention", [&] { tg::scaled_dot_product_attention(queries, keys, values); });
  const auto most_queries = zeros<T>({std::size_t{1} << 62, 0}), no_values = zeros<T>({0, 0});
  check_refused("scaled_dot_product_attention",  // stores two numbers per query
                [&] { tg::scaled_dot_product_attention(most_queries, keys, no_values); });
  check_refused("multi_head_attention", [&] {
    tg::multi_head_attention(zeros<T>({1, kHuge, 0}), zeros<T>({1, 0, 0}), zeros<T>({1, 0, kHuge}), 2);
  });
  check_refused("multi_head_attention", [&] {  // values of one head shared by three
    tg::multi_head_attention(zeros<T>({1, 0, 3}), zeros<T>({1, 0, 1}), zeros<T>({1, 0, kThird}), 3);
  });
}

TEST_CASE_TEMPLATE("rotary_embedding of an empty array computes no angles and no frequencies", T, float, double) {
  CHECK(tg::rotary_embedding(zeros<T>({0, kHuge, 4}), 2).shape() == Shape{0, kHuge, 4});
  CHECK(tg::rotary_embedding(zeros<T>({0, 1, kHuge}), 1).shape() == Shape{0, 1, kHuge});
}
