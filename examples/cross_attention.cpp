/// Cross attention: queries from one sequence, keys and values from another of any length. pronounce/ trains a model
/// with it.

#include <tapegrad/tapegrad.hpp>

#include <cmath>
#include <iostream>
#include <string>
#include <utility>

#include "common/tutorial.hpp"

namespace tg = tapegrad;
using namespace examples;  // section, show, named, as_step etc. from common/tutorial.hpp
using Tensor = tg::Tensor<double>;
using Parameter = tg::Parameter<double>;
using Linear = tg::Linear<double>;
using Array = tg::Array<double>;

// Shapes: B batch entries, T queries, S keys and values, H heads, width D of all heads together.

/// A page step with named axes.
tg::PageStep labelled(const std::string& label, std::size_t queries, std::size_t keys) {
  const tg::PageAxis batch{"batch"}, head{"head"}, token{"token"}, of_width{};
  const tg::PageAxis query{"query", numbered("query", queries)}, key{"key", numbered("key", keys)};
  tg::PageStep step{.label = label};
  for (const char* name : {"queries", "X", "output"}) step.axes[name] = {batch, query, of_width};
  for (const char* name : {"keys", "Y"}) step.axes[name] = {batch, key, of_width};
  for (const char* name : {"cut", "together"}) step.axes[name] = {batch, token, head, of_width};
  step.axes["q"] = {batch, head, query, of_width};
  for (const char* name : {"k", "v"}) step.axes[name] = {batch, head, key, of_width};
  for (const char* name : {"scores", "masked", "weights", "dropped"}) step.axes[name] = {batch, head, query, key};
  step.tokens[""] = {.queries = {query.labels}, .keys = {key.labels}};
  return step;
}

// ---- the model ----------------------------------------------------------------------------------------------------

/// x: (B, T, D) -> (B, H, T, D / H)
Tensor split_heads(const Tensor& x, std::size_t heads) {
  const auto& s = x.shape();
  const Tensor cut = named("cut", tg::reshape(x, {s[0], s[1], heads, s[2] / heads}));  // (B, T, H, D / H)
  return tg::permute(cut, {0, 2, 1, 3});
}

/// x: (B, H, T, D / H) -> (B, T, D)
Tensor merge_heads(const Tensor& x) {
  const Tensor together = named("together", tg::permute(x, {0, 2, 1, 3}));  // (B, T, H, D / H)
  const auto& s = together.shape();
  return tg::reshape(together, {s[0], s[1], s[2] * s[3]});
}

/// True for keys past the valid length. lengths: (B), or (B, T) with one length per query -> (B, 1, 1 or T, S)
tg::BoolArray beyond(const tg::IntArray& lengths, std::size_t keys) {
  const std::size_t batch = lengths.shape()[0], queries = lengths.dimension() == 2 ? lengths.shape()[1] : 1;
  tg::BoolArray hidden(tg::Shape{batch, 1, queries, keys});
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t t = 0; t < queries; ++t)
      for (std::size_t s = 0; s < keys; ++s)
        hidden(b, 0, t, s) = static_cast<std::int64_t>(s) >= lengths.data()[b * queries + t];
  return hidden;
}

struct CrossAttention {
  std::size_t num_heads;
  Linear W_q, W_k, W_v, W_o;
  tg::Dropout dropout;
  TAPEGRAD_FIELDS(W_q, W_k, W_v, W_o, dropout)
  TAPEGRAD_SETTINGS(num_heads)

  CrossAttention(std::size_t num_hiddens, std::size_t heads, double p)
      : num_heads(heads),
        W_q(num_hiddens, num_hiddens, {.bias = false}),
        W_k(num_hiddens, num_hiddens, {.bias = false}),
        W_v(num_hiddens, num_hiddens, {.bias = false}),
        W_o(num_hiddens, num_hiddens, {.bias = false}),
        dropout(p) {}

  /// queries: (B, T, D), keys: (B, S, D), valid_lens: (B) or (B, T) -> (B, H, T, S)
  Tensor weights(const Tensor& queries, const Tensor& keys, const tg::IntArray& valid_lens) const {
    const Tensor q = named("q", split_heads(W_q(queries), num_heads)),
                 k = named("k", split_heads(W_k(keys), num_heads));
    const auto width = static_cast<double>(q.shape()[3]);
    const Tensor scores = named("scores", tg::einsum("bhtd,bhsd->bhts", q, k) / std::sqrt(width));
    const Tensor masked = named("masked", tg::masked_fill(scores, beyond(valid_lens, keys.shape()[1]), -1e6));
    return dropout(named("weights", tg::softmax(masked, -1)));
  }

  /// queries: (B, T, D), keys and values: (B, S, D), valid_lens: (B) or (B, T) -> (B, T, D)
  Tensor operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                    const tg::IntArray& valid_lens) const {
    const Tensor P = weights(queries, keys, valid_lens);               // (B, H, T, S)
    const Tensor v = named("v", split_heads(W_v(values), num_heads));  // (B, H, S, D / H)
    return named("output", W_o(merge_heads(tg::matmul(P, v))));
  }
};

// ---- the lesson ---------------------------------------------------------------------------------------------------

/// A page step about splitting three tokens into heads, without attention.
tg::PageStep labelled_heads(const std::string& label) {
  const tg::PageAxis batch{"batch"}, head{"head"}, token{"token", numbered("token", 3)}, of_width{};
  tg::PageStep step{.label = label, .axes = {{"cut", {batch, token, head, of_width}}}};
  step.axes["together"] = step.axes["cut"];
  for (const char* name : {"X", "merged"}) step.axes[name] = {batch, token, of_width};
  for (const char* name : {"heads", "wrong"}) step.axes[name] = {batch, head, token, of_width};
  return step;
}

void splitting_and_merging_heads(tg::Page& page) {
  section("1. Heads are split and merged by reshape and permute",
          "Three tokens of width 4, two heads. The numbers show their origin: token 2 has 20 to 23, where 20 "
          "and 21 belong to head 0, 22 and 23 to head 1.");
  Parameter x(Array{{{0, 1, 2, 3}, {10, 11, 12, 13}, {20, 21, 22, 23}}});
  x.set_name("X");
  const Style whole{.decimals = 0};
  show("X [batch entry]", x, whole);
  show("reshape to (1, 3, 2, 2) [batch entry, token]: heads x numbers", tg::reshape(x, {1, 3, 2, 2}), whole);
  show("permute 0, 2, 1, 3 [batch entry, head]: tokens x numbers", split_heads(x, 2), whole);
  see("each head has two numbers of every token");
  show("merged again",
       as_step(page, labelled_heads("1. Heads split and merged"),
               [&] { return named("merged", merge_heads(named("heads", split_heads(x, 2)))); }),
       whole);
  see("permute the same axes and reshape back to get X again");

  say("A mistake without an error message, since the shape is right: one reshape to (1, 2, 3, 2).");
  show("wrong heads [batch entry, head]",
       as_step(page, labelled_heads("1. Wrong: one reshape"),
               [&] {
                 return named("wrong", tg::reshape(x, {1, 2, 3, 2}));
               }),
       whole);
  see("wrong: head 0 has all of token 0, as if it were two tokens, half of token 1, and nothing of token 2");
  show("right heads [batch entry, head]", split_heads(x, 2), whole);
  see("right: reshape splits only the last axis, then permute moves the heads to the front");
}

void queries_of_one_keys_of_another(tg::Page& page, const CrossAttention& model, const Parameter& queries,
                                    const Parameter& keys) {
  section("2. Queries of one sequence, keys and values of another",
          "Two batch entries, width 4, two heads. Two queries attend to four keys. Each key has a value; here "
          "keys and values are the same.");
  show("queries", queries, {.decimals = 1});
  show("keys = values", keys, {.decimals = 1});
  show_parameters(model);
  const tg::IntArray all{4, 4};
  show("weights [batch entry, head]", model.weights(queries, keys, all));
  see("2 x 4: a row for each query, a column for each key");
  show("output", as_step(page, labelled("2. Queries of one sequence, keys and values of another", 2, 4),
                         [&] { return model(queries, keys, keys, all); }));
  see("one row per query, for any number of keys");
}

/// Adds a page step: a backward pass from the mean square of the output. -> the output
template <class Model, class Mask>
Tensor sweep(tg::Page& page, const tg::PageStep& step, const Model& model, const Parameter& queries,
             const Parameter& keys, const Mask& mask) {
  return as_step(page, step, [&] {
    Tensor output = named("output", model(queries, keys, keys, mask));
    tg::mean(output * output).backward();
    return output;
  });
}

void valid_lengths(tg::Page& page, const CrossAttention& model, const Parameter& queries, const Parameter& keys) {
  section("3. Valid lengths",
          "Only the first keys of an entry are real, the others are padding. One length per entry, of shape "
          "(batch,), applies to all its queries:");
  const tg::IntArray of_entries{3, 2}, of_queries{{1, 2}, {4, 3}};
  show("valid_lens", of_entries);
  show("weights [batch entry, head]", model.weights(queries, keys, of_entries));
  see("entry 0 sees three keys, entry 1 two, in both heads");
  show("output", as_step(page, labelled("3. A valid length for each entry", 2, 4),
                         [&] { return model(queries, keys, keys, of_entries); }));

  say("One length per query, of shape (batch, queries), as in a decoder, which must not look ahead:");
  show("valid_lens of queries", of_queries);
  show("weights by query [batch entry, head]", model.weights(queries, keys, of_queries));
  see("row t of entry b sees valid_lens[b, t] keys");
  show("output by query", model(queries, keys, keys, of_queries));

  say("The gradient of mean(output^2), with one length per query:");
  sweep(page, labelled("3. A valid length for each query", 2, 4), model, queries, keys, of_queries);
  show("queries.grad", queries.grad());
  show("keys.grad", keys.grad());
  see("keys 2 and 3 of entry 0 have no gradient, since no query sees them. Query 0 of entry 0 has none either: "
      "it sees a single key, whose weight is 1 for any query");
}

void dropout_of_the_weights(tg::Page& page, CrossAttention& model, const Parameter& queries, const Parameter& keys) {
  section("4. Dropout 0.5",
          "In training each weight is set to 0 with probability 0.5, and the others are doubled, so the sum stays "
          "about the same. In evaluation, as above, dropout does nothing.");
  const tg::IntArray lengths{3, 2};
  show("weights in evaluation", model.weights(queries, keys, lengths));
  tg::train(model);
  show("weights in training", as_step(page, labelled("4. Dropout 0.5 of the weights, in training", 2, 4),
                                      [&] { return named("dropped", model.weights(queries, keys, lengths)); }));
  tg::eval(model);
  see("every weight is 0 or doubled; another --seed drops other weights");
}

void the_textbooks_run(tg::Page& page) {
  section("5. The textbook's run: output (2, 4, 100) from ones",
          "As in the chapter on multi-head attention of Dive into Deep Learning (d2l.ai): width 100, 5 heads, no "
          "biases, dropout 0.5. X holds four queries, Y six keys with their values, all ones. Valid lengths 3 and 2.");
  CrossAttention attention(100, 5, 0.5);
  tg::eval(attention);
  tg::parameters(attention);  // assigns their names
  std::cout << '\n';
  tg::print(std::cout, attention);

  const Tensor X = named("X", Tensor(Array(tg::Shape{2, 4, 100}, 1)));
  const Tensor Y = named("Y", Tensor(Array(tg::Shape{2, 6, 100}, 1)));
  const tg::IntArray valid_lens{3, 2};
  const Tensor output =
      as_step(page, labelled("5. The textbook's run", 4, 6), [&] { return attention(X, Y, Y, valid_lens); });
  say("X " + tg::to_string(X.shape()) + ", Y " + tg::to_string(Y.shape()) + " -> output " +
      tg::to_string(output.shape()));
  show("weights of head 0 [batch entry]", tg::select(attention.weights(X, Y, valid_lens), 1, 0));
  see("equal keys get equal weights: 1/3 for each of three valid keys, 1/2 for each of two");
  show("output, first 5 of 100 numbers [batch entry]", tg::narrow(output, -1, 0, 5));
  see("all rows are equal, in both entries: the values are equal, so any mean of them is the same. This run shows "
      "shapes; to show the effect of masks, values must differ, as above");

  const Tensor one_row(Array(tg::Shape{100}, 1));  // (D)
  Comparison table(1e-12);
  table.add("output", "attention and W_o W_v 1 in every row", output,
            tg::expand(attention.W_o(attention.W_v(one_row)), {2, 4, 100}));
  finish(table);
}

void the_librarys_layer(tg::Page& page) {
  section("6. The same as the library's layer",
          "tg::MultiHeadAttention with the same parameters, on random numbers, with both forms of valid_lens. "
          "The gradients are of mean(output^2).");
  CrossAttention by_hand(100, 5, 0.5);
  tg::MultiHeadAttention<double> layer(100, 5, {.bias = false, .dropout = 0.5});
  tg::eval(by_hand);
  tg::eval(layer);
  layer.q_proj = by_hand.W_q, layer.k_proj = by_hand.W_k, layer.v_proj = by_hand.W_v, layer.out_proj = by_hand.W_o;
  Parameter queries(tg::normal<double>({2, 4, 100})), keys(tg::normal<double>({2, 6, 100}));
  queries.set_name("queries"), keys.set_name("keys");
  Parameter layer_queries = queries, layer_keys = keys;  // copies with separate gradients

  Comparison table(1e-12);
  using Lengths = std::pair<std::string, tg::IntArray>;
  for (const auto& [name, lengths] :
       {Lengths("(batch,)", {3, 2}), Lengths("(batch, queries)", {{1, 2, 3, 4}, {6, 5, 4, 3}})}) {
    const auto mask = tg::AttentionMask::valid_lens(lengths);
    const Tensor ours = sweep(page, labelled("6. By hand, lengths " + name, 4, 6), by_hand, queries, keys, lengths);
    const Tensor theirs =
        sweep(page, labelled("6. The library's layer, lengths " + name, 4, 6), layer, layer_queries, layer_keys, mask);
    table.add("output", name, ours, theirs);
  }
  table.add("queries.grad", "", queries.grad(), layer_queries.grad());
  table.add("keys.grad", "", keys.grad(), layer_keys.grad());
  const auto ours = tg::named_parameters(by_hand), theirs = tg::named_parameters(layer);
  for (std::size_t i = 0; i < ours.size(); ++i)
    table.add(ours[i].first + ".grad", "", ours[i].second->grad(), theirs[i].second->grad());
  finish(table);
}

int main(int argc, char** argv) {
  const char* description =
      "Attention with queries of one sequence and keys and values of another, without biases, with valid lengths "
      "for each batch entry or each query, and dropout 0.5. Heads are split and merged by reshape and permute.";
  const tg::PageOptions options{.title = "Attention between two sequences"};
  return run_tutorial(argc, argv, "cross_attention", description, options, [](tg::Page& page) {
    splitting_and_merging_heads(page);

    Parameter queries(random_numbers<double>({2, 2, 4})), keys(random_numbers<double>({2, 4, 4}));
    queries.set_name("queries"), keys.set_name("keys");
    CrossAttention model(4, 2, 0.5);
    round_parameters(model);
    tg::eval(model);
    queries_of_one_keys_of_another(page, model, queries, keys);
    valid_lengths(page, model, queries, keys);
    dropout_of_the_weights(page, model, queries, keys);

    the_textbooks_run(page);
    the_librarys_layer(page);
  });
}
