/// TransformerDecoderBlock and its cache. models_test.cpp and torch_layers_test.cpp compare it with PyTorch.
#include <tapegrad/testing.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "in_double.hpp"
#include "refused.hpp"

namespace {

using Block = tg::TransformerDecoderBlock<double>;
using Cache = tg::DecoderCache<double>;
using Mask = tg::AttentionMask;

const tg::TransformerBlockOptions grouped_and_rotary{.feed_forward_width = 6,
                                                     .activation = tg::Activation::swiglu,
                                                     .bias = false,
                                                     .normalization = tg::Normalization::rms,
                                                     .num_kv_heads = 2,
                                                     .rotary_base = 100};

// Blocks of width 8 with a memory of width 6, with norms everywhere they can be.
std::vector<Block> decoder_blocks() {
  tg::manual_seed(5);
  std::vector<Block> all{{8, 2, {}, 6}, {8, 4, grouped_and_rotary, 6}};
  all.push_back({8, 2, {.norm = tg::NormPlacement::last}, 6});
  all.push_back({8, 2, {.norm = tg::NormPlacement::none}, 6});
  return all;
}

Tensor token(const Tensor& x, std::size_t t) { return tg::narrow(x, 1, static_cast<std::ptrdiff_t>(t), 1); }

}  // namespace

TEST_CASE("A decoder block token by token with a cache matches the block at once") {
  for (const Block& block : decoder_blocks()) {
    const Tensor x(tg::normal<double>({3, 5, 8})), memory(tg::normal<double>({3, 4, 6}));
    const Mask seen = Mask::valid_lens({4, 1, 3}) & Mask::boolean({{true, false, true, true}});
    const Tensor whole = block(x, memory, Mask::causal(), seen);
    Cache cache(block, memory);
    CHECK(cache.size() == 0);
    for (std::size_t t = 0; t < 5; ++t) check_close(block(token(x, t), cache, seen).value(), token(whole, t).value());
    CHECK(cache.size() == 5);

    Cache in_pieces(block, memory);
    check_close(block(tg::narrow(x, 1, 0, 3), in_pieces, seen).value(), tg::narrow(whole, 1, 0, 3).value());
    check_close(block(tg::narrow(x, 1, 3, 2), in_pieces, seen).value(), tg::narrow(whole, 1, 3, 2).value());
  }
}

TEST_CASE("A decoder's cache selects, repeats and reorders sequences with their memory") {
  const tg::IntArray order{2, 0, 2, 1};
  for (const Block& block : decoder_blocks()) {
    const Tensor x(tg::normal<double>({3, 3, 8})), memory(tg::normal<double>({3, 4, 6}));
    const Tensor next(tg::normal<double>({4, 1, 8}));
    Cache cache(block, memory);
    (void)block(x, cache);
    cache.select({0, 1, 2});  // as they are
    cache.select(order);
    CHECK(cache.size() == 3);
    const Tensor selected = tg::cat({Tensor(tg::rows(x.value(), order)), next}, 1);
    const Tensor whole = block(selected, Tensor(tg::rows(memory.value(), order)), Mask::causal());
    check_close(block(next, cache).value(), token(whole, 3).value());
    cache.select(tg::IntArray(tg::Shape{0}));
    CHECK(block(Tensor(Array(tg::Shape{0, 1, 8})), cache).shape() == tg::Shape{0, 1, 8});
  }
}

TEST_CASE("select before the first token selects the memory") {
  const Block block = decoder_blocks()[0];
  const Tensor x(tg::normal<double>({2, 1, 8})), memory(tg::normal<double>({1, 4, 6}));
  Cache cache(block, memory);
  cache.select({0, 0});
  check_close(block(x, cache).value(), block(x, tg::repeat(memory, {2, 1, 1})).value());
}

TEST_CASE("Rows outside of a cache are refused, and it is unchanged") {
  const Block block = decoder_blocks()[0];
  const Tensor x(tg::normal<double>({2, 1, 8})), memory(tg::normal<double>({2, 4, 6}));
  Cache cache(block, memory);
  (void)block(x, cache);
  Cache same = cache;
  CHECK_THROWS_AS(cache.select({0, 2}), std::out_of_range);
  CHECK_THROWS_AS(cache.select({-1}), std::out_of_range);
  check_close(block(x, cache).value(), block(x, same).value(), 0);

  tg::KeyValueCache<double> keys;
  keys.select({7});  // an empty cache has no sequences yet
  keys.attend(x, x, x, 2);
  CHECK_THROWS_WITH_AS(keys.select({1, 2}), "[KeyValueCache] expected rows from 0 to 1, got 2", std::out_of_range);
}

TEST_CASE("A decoder block returns the weights of its cross-attention") {
  for (const Block& block : decoder_blocks()) {
    const Tensor x(tg::normal<double>({2, 5, 8})), memory(tg::normal<double>({2, 4, 6}));
    const Mask seen = Mask::valid_lens({4, 2});
    const auto [y, weights] = block.with_weights(x, memory, Mask::causal(), seen);
    check_close(y.value(), block(x, memory, Mask::causal(), seen).value());
    CHECK(weights.shape() == tg::Shape{2, block.cross_attention.num_heads, 5, 4});
    check_close(tg::sum(weights, {3}).value(), Array(tg::Shape{2, block.cross_attention.num_heads, 5}, 1.0));
    CHECK(weights.value()(1, 0, 4, 2) == 0);
  }
}

TEST_CASE("A tape finds the cross-attention and its weights") {
  struct Model {
    Block decoder{8, 2, {}, 6};
    TAPEGRAD_FIELDS(decoder)
  };
  tg::manual_seed(6);
  Model model;
  tg::named_parameters(model);  // names the layers
  const Tensor x(tg::normal<double>({2, 5, 8})), memory(tg::normal<double>({2, 4, 6}));
  const tg::Tape tape({.keep_values = true});
  const Tensor y = model.decoder(x, memory);
  tg::sum(y * y).backward();
  const auto weights = tape.find<double>("decoder.cross_attention").attention_weights();
  CHECK_CLOSE(weights.value(), model.decoder.with_weights(x, memory).second);
  CHECK(tape.find<double>("decoder.attention").attention_weights().value().shape() == tg::Shape{2, 2, 5, 5});
}

TEST_CASE("A decoder block has correct gradients, also with respect to the memory") {
  for (Block block : decoder_blocks()) {
    const Tensor x(tg::normal<double>({2, 4, 8}));
    Parameter memory(tg::normal<double>({2, 3, 6}));
    tg::NamedParameters<double> named = tg::named_parameters(block);
    named.emplace_back("memory", memory);
    CHECK_GRADIENTS(
        [&] {
          const auto [y, weights] = block.with_weights(x, memory, Mask::causal());
          const Tensor z = block(x, memory, Mask::causal(), Mask::valid_lens({3, 2}));
          return tg::mean(y * z) + tg::mean(weights * weights);
        },
        named);
  }
}

TEST_CASE("Misuse of a decoder block is refused") {
  const auto refused = [](const char* operation, const std::vector<std::string>& texts, auto call) {
    check_refused_unchanged(operation, texts, call);
  };
  refused("TransformerDecoderBlock", {"width"}, [] { return Block(0, 1); });
  refused("MultiHeadAttention", {"dim divisible by num_heads", "5", "2"}, [] { return Block(5, 2); });
  const Block block = decoder_blocks()[0];
  const Tensor x(tg::normal<double>({2, 1, 8})), memory(tg::normal<double>({2, 4, 6}));
  CHECK_THROWS_AS(block(x, x), std::invalid_argument);  // a memory of another width
  CHECK_THROWS_AS(block(x, Tensor(tg::normal<double>({3, 4, 6}))), std::invalid_argument);
  {
    const tg::Tape tape;
    CHECK_THROWS_AS(Cache(block, memory), std::logic_error);
  }
  CHECK_THROWS_AS(Cache(block, Tensor(tg::normal<double>({4, 6}))), std::invalid_argument);
  Cache cache(block, memory), same = cache;
  refused("TransformerDecoderBlock", {"x (2, T, width)", "(3, 1, 8)"}, [&] {
    return block(Tensor(Array(tg::Shape{3, 1, 8}, 1.0)), cache);
  });
  refused("TransformerDecoderBlock", {"(3)"}, [&] { return block(x, cache, Mask::valid_lens({1, 2, 3})); });
  Cache of_another(decoder_blocks()[1], memory);  // whose keys have another width
  refused("TransformerDecoderBlock", {"made by this block", "(2, 4, 4)"}, [&] { return block(x, of_another); });
  CHECK(cache.size() + of_another.size() == 0);
  CHECK_THROWS_AS(cache.select(tg::IntArray{{0, 1}}), std::invalid_argument);
  check_close(block(x, cache).value(), block(x, same).value(), 0);
  const tg::MultiHeadAttention<double> grouped(8, 4, {.num_kv_heads = 2});
  refused("MultiHeadAttention", {"keys after k_proj (B, S, 4)", "(2, 1, 8)"}, [&] { return grouped.attend(x, x, x); });
  const tg::MultiHeadAttention<double> rotary(8, 2, {.rotary_base = 100});
  CHECK_THROWS_AS(rotary.attend(x, x, x), std::logic_error);
}
