#include "../support/special_values.hpp"
#include "table.hpp"

namespace operations {
namespace {

using Mask = tg::AttentionMask;

// Masks for 2 batch entries, 2 heads, 3 queries and 4 keys.
Mask padding() { return Mask::key_padding({{true, true, false, true}, {true, false, false, false}}); }
Mask lengths() { return Mask::valid_lens({4, 2}); }
Mask lengths_of_queries() { return Mask::valid_lens({{1, 4, 3}, {2, 0, 9}}); }  // one hides every key, one hides none
Mask allowed() { return Mask::boolean(drawn_mask({3, 4}, 7)); }
Mask allowed_by_batch() { return Mask::boolean(drawn_mask({2, 1, 3, 4}, 7)); }
Mask allowed_by_head() { return Mask::boolean(drawn_mask({1, 2, 1, 4}, 8)); }
Mask bias() { return Mask::additive(numbers<double>(draw({3, 4}, -2, 2), 7)); }
Mask bias_by_head() { return Mask::additive(numbers<double>(draw({1, 2, 3, 1}, -2, 2), 8)); }
Mask bias_of_infinities() {
  return Mask::additive({{0, -kInfinity, 0.5, 0}, {-kInfinity, 0, 0, 0}, {1, 2, 3, -kInfinity}});
}
// Query t sees the keys 0, ..., t for any number of keys, as with PyTorch's is_causal, the source of the fixtures.
Mask lower_left(std::size_t queries, std::size_t keys) { return Mask::boolean(tg::causal_mask(queries, keys)); }
Mask nobody() { return Mask::valid_lens({0, 0}); }

// An operation under every kind of mask. F()(inputs, mask) applies it.
template <class F> void add_masks(Table& table, const char* operation, const std::vector<Draw>& inputs, F) {
  table.add(operation, "no mask", inputs, [](auto& x) { return F()(x, Mask::none()); });
  table.add(operation, "causal", inputs, [](auto& x) { return F()(x, lower_left(3, 4)); });
  table.add(operation, "key padding", inputs, [](auto& x) { return F()(x, padding()); });
  table.add(operation, "valid lengths", inputs, [](auto& x) { return F()(x, lengths()); });
  table.add(operation, "valid lengths of every query", inputs, [](auto& x) { return F()(x, lengths_of_queries()); });
  table.add(operation, "allowed (T, S)", inputs, [](auto& x) { return F()(x, allowed()); });
  table.add(operation, "allowed (B, 1, T, S)", inputs, [](auto& x) { return F()(x, allowed_by_batch()); });
  table.add(operation, "allowed (1, H, 1, S)", inputs, [](auto& x) { return F()(x, allowed_by_head()); });
  table.add(operation, "added (T, S)", inputs, [](auto& x) { return F()(x, bias()); });
  table.add(operation, "added (1, H, T, 1)", inputs, [](auto& x) { return F()(x, bias_by_head()); });
  table.add(operation, "added infinities", inputs, [](auto& x) { return F()(x, bias_of_infinities()); });
  table.add(operation, "all keys hidden", inputs, [](auto& x) { return F()(x, nobody()); });
  table.add(operation, "causal and key padding", inputs, [](auto& x) { return F()(x, lower_left(3, 4) & padding()); });
  table.add(operation, "two of lengths, two allowed, two added", inputs, [](auto& x) {
    return F()(x, lengths() & lengths_of_queries() & allowed_by_batch() & allowed_by_head() & bias() & bias_by_head());
  });
}

void add_scaled_dot_product(Table& table) {
  const char* name = "scaled_dot_product_attention";
  const auto f = [](auto& x, const Mask& mask) { return tg::scaled_dot_product_attention(x[0], x[1], x[2], mask); };
  const auto plain = [](auto& x) { return tg::scaled_dot_product_attention(x[0], x[1], x[2]); };
  const auto itself = [](auto& x) { return tg::scaled_dot_product_attention(x[0], x[0], x[0], Mask::causal()); };
  add_masks(table, name, {draw({2, 2, 3, 2}, -2, 2), draw({2, 2, 4, 2}, -2, 2), draw({2, 2, 4, 1})}, f);

  table.add(name, "two axes", {"*td,*sd,*se", draw({3, 2}), draw({4, 2}), draw({4, 3})}, plain);
  table.add(name, "values of no width", {draw({3, 2}), draw({4, 2}), draw({4, 0})}, plain);
  table.add(name, "no keys", {draw({3, 2}), draw({0, 2}), draw({0, 3})}, plain);
  table.add(name, "no queries", {draw({0, 2}), draw({4, 2}), draw({4, 3})}, plain);
  table.add(name, "large", {draw({2, 2}, -100, 100), draw({4, 2}, -100, 100), draw({4, 2})}, plain);
  table.add(name, "tiny", {draw({2, 2}, -1e-4, 1e-4), draw({4, 2}, -1e-4, 1e-4), draw({4, 2})}, plain, 1e-5);
  table.add(name, "queries, keys and values are one", {draw({2, 1, 3, 2}, -2, 2)}, itself);
  table.add(name, "keys and values are one", {draw({3, 2}, -2, 2), draw({4, 2}, -2, 2)},
            [](auto& x) { return tg::scaled_dot_product_attention(x[0], x[1], x[1]); });
  table.add(name, "another scale", {draw({3, 2}), draw({4, 2}), draw({4, 2})},
            [](auto& x) { return tg::scaled_dot_product_attention(x[0], x[1], x[2], {}, {.scale = 2.5}); });
  table.add(name, "dropout", {draw({2, 2, 3, 2}), draw({2, 2, 4, 2}), draw({2, 2, 4, 1})},
            [](auto& x) { return tg::scaled_dot_product_attention(x[0], x[1], x[2], padding(), {.dropout = 0.3}); });
}

void add_multi_head(Table& table) {
  const char* name = "multi_head_attention";
  const auto f = [](auto& x, const Mask& mask) { return tg::multi_head_attention(x[0], x[1], x[2], 2, mask); };
  const auto plain = [](auto& x) { return tg::multi_head_attention(x[0], x[1], x[2], 2); };
  const auto itself = [](auto& x) { return tg::multi_head_attention(x[0], x[0], x[0], 2, Mask::causal()); };
  add_masks(table, name, {draw({2, 3, 4}, -2, 2), draw({2, 4, 4}, -2, 2), draw({2, 4, 2})}, f);

  table.add(name, "as many heads as features", {"1tW,1sW,1sW", draw({1, 3, 4}), draw({1, 2, 4}), draw({1, 2, 4})},
            [](auto& x) { return tg::multi_head_attention(x[0], x[1], x[2], 4); });
  table.add(name, "no queries", {draw({1, 0, 4}), draw({1, 2, 4}), draw({1, 2, 2})}, plain);
  const std::vector<Draw> large_and_tiny{draw({1, 2, 4}, -1e4, 1e4), draw({1, 4, 4}, -1e-4, 1e-4), draw({1, 4, 2})};
  table.add(name, "large and tiny", large_and_tiny, plain, 1e-8);
  table.add(name, "tiny", {draw({1, 2, 4}, -1e-4, 1e-4), draw({1, 4, 4}, -1e-4, 1e-4), draw({1, 4, 2})}, plain, 1e-5);
  table.add(name, "no keys", {draw({1, 3, 4}), draw({1, 0, 4}), draw({1, 0, 2})}, plain);
  table.add(name, "queries, keys and values are one", {draw({2, 3, 4}, -2, 2)}, itself);
  table.add(name, "keys and values are one", {draw({1, 3, 4}, -2, 2), draw({1, 4, 4}, -2, 2)},
            [](auto& x) { return tg::multi_head_attention(x[0], x[1], x[1], 2); });
  table.add(name, "dropout", {draw({2, 3, 4}), draw({2, 4, 4}), draw({2, 4, 2})},
            [](auto& x) { return tg::multi_head_attention(x[0], x[1], x[2], 2, padding(), {.dropout = 0.3}); });
}

// Several heads share keys and values.
void add_groups(Table& table) {
  const char* name = "multi_head_attention";
  const std::vector<Draw> shared{draw({2, 3, 8}, -2, 2), draw({2, 4, 4}, -2, 2), draw({2, 4, 6})};
  table.add(name, "two groups of two heads", {"1tQ,1sK,1sV", shared},
            [](auto& x) { return tg::multi_head_attention(x[0], x[1], x[2], 4); });
  const std::vector<Draw> one_group{draw({2, 3, 4}, -2, 2), draw({2, 4, 2}, -2, 2), draw({2, 4, 1})};
  table.add(name, "one group, dropout", one_group,
            [](auto& x) { return tg::multi_head_attention(x[0], x[1], x[2], 2, padding(), {.dropout = 0.3}); });
  table.add(name, "one group of three heads, keys and values are one", {draw({1, 3, 6}, -2, 2), draw({1, 4, 2}, -2, 2)},
            [](auto& x) { return tg::multi_head_attention(x[0], x[1], x[1], 3); });
}

void add_rotary(Table& table) {
  const char* name = "rotary_embedding";
  const auto one = [](auto& x) { return tg::rotary_embedding(x[0], 1); };
  const auto two = [](auto& x) { return tg::rotary_embedding(x[0], 2); };
  table.add(name, "one head", {draw({2, 3, 4})}, one);
  table.add(name, "two heads", {"1tW", draw({2, 3, 8})}, two);
  table.add(name, "heads of one pair", {draw({2, 5, 6})}, [](auto& x) { return tg::rotary_embedding(x[0], 3); });
  table.add(name, "another base", {draw({1, 4, 6})},
            [](auto& x) { return tg::rotary_embedding(x[0], 1, {.base = 2.5}); });
  table.add(name, "further on", {draw({2, 3, 8})}, [](auto& x) { return tg::rotary_embedding(x[0], 2, {.first = 7}); });
  table.add(name, "heads of no width", {draw({2, 3, 0})}, two);
}

}  // namespace

void add_attention(Table& table) {
  add_scaled_dot_product(table);
  add_multi_head(table);
  add_groups(table);
  add_rotary(table);

  const auto f = [](auto& x, const Mask& mask) { return tg::masked_softmax(x[0], mask); };
  add_masks(table, "masked_softmax", {draw({2, 2, 3, 4}, -2, 2)}, f);
  table.add("masked_softmax", "two axes", {draw({3, 4}, -2, 2)},
            [](auto& x) { return tg::masked_softmax(x[0], allowed() & bias()); });
  table.add("masked_softmax", "large", {"*TS", draw({3, 4}, -1e4, 1e4)},
            [](auto& x) { return tg::masked_softmax(x[0], lower_left(3, 4)); });
  table.add("masked_softmax", "no keys", {draw({3, 0})}, [](auto& x) { return tg::masked_softmax(x[0], {}); });
  table.add("masked_softmax", "no queries", {draw({0, 4})}, [](auto& x) { return tg::masked_softmax(x[0], {}); });
  table.add("masked_softmax", "one key", {"*ts", draw({3, 1})}, [](auto& x) { return tg::masked_softmax(x[0], {}); });
}

}  // namespace operations
