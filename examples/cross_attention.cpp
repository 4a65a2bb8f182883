/// Attention between two sequences: queries of one, keys and values of another that may be longer.

#include <tapegrad/tapegrad.hpp>

#include <cmath>
#include <iostream>
#include <utility>

#include "common/tutorial.hpp"

namespace tg = tapegrad;
using namespace examples;  // section, say, see, show and Comparison, from common/tutorial.hpp
using Tensor = tg::Tensor<double>;
using Parameter = tg::Parameter<double>;
using Linear = tg::Linear<double>;
using Array = tg::Array<double>;

// B batch entries, T queries, S keys with their values, H heads, D numbers in the vectors of all heads.

// ---- the model ----------------------------------------------------------------------------------------------------

/// x: (B, T, D) -> (B, H, T, D / H)
Tensor split_heads(const Tensor& x, std::size_t heads) {
  const auto& s = x.shape();
  const Tensor cut = tg::reshape(x, {s[0], s[1], heads, s[2] / heads});  // (B, T, H, D / H)
  return tg::permute(cut, {0, 2, 1, 3});
}

/// x: (B, H, T, D / H) -> (B, T, D)
Tensor merge_heads(const Tensor& x) {
  const Tensor together = tg::permute(x, {0, 2, 1, 3});  // (B, T, H, D / H)
  const auto& s = together.shape();
  return tg::reshape(together, {s[0], s[1], s[2] * s[3]});
}

/// True where a key is no longer valid. lengths: (B), or (B, T) for a length of each query -> (B, 1, 1 or T, S)
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
    const Tensor q = split_heads(W_q(queries), num_heads), k = split_heads(W_k(keys), num_heads);
    const Tensor scores = tg::einsum("bhtd,bhsd->bhts", q, k) / std::sqrt(static_cast<double>(q.shape()[3]));
    return dropout(tg::softmax(tg::masked_fill(scores, beyond(valid_lens, keys.shape()[1]), -1e6), -1));
  }

  /// queries: (B, T, D), keys and values: (B, S, D), valid_lens: (B) or (B, T) -> (B, T, D)
  Tensor operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                    const tg::IntArray& valid_lens) const {
    const Tensor v = split_heads(W_v(values), num_heads);  // (B, H, S, D / H)
    return W_o(merge_heads(tg::matmul(weights(queries, keys, valid_lens), v)));
  }
};

// ---- what it computes ---------------------------------------------------------------------------------------------

void splitting_and_merging_heads() {
  section("1. Heads are split and merged by reshape and permute",
          "Three tokens of width 4, two heads. The numbers tell where they are from: token 2 has 20 to 23, of "
          "which 20 and 21 are for head 0, 22 and 23 for head 1.");
  const Tensor x(Array{{{0, 1, 2, 3}, {10, 11, 12, 13}, {20, 21, 22, 23}}});
  const Style whole{.decimals = 0};
  show("X [batch entry]", x, whole);
  show("reshape to (1, 3, 2, 2) [batch entry, token]: heads x numbers", tg::reshape(x, {1, 3, 2, 2}), whole);
  show("permute 0, 2, 1, 3 [batch entry, head]: tokens x numbers", split_heads(x, 2), whole);
  see("each head has its two numbers of every token");
  show("merged again", merge_heads(split_heads(x, 2)), whole);
  see("permute the same axes, reshape back: X again");

  say("A mistake that raises no error, for the shape is right: one reshape to (1, 2, 3, 2).");
  show("wrong heads [batch entry, head]", tg::reshape(x, {1, 2, 3, 2}), whole);
  see("wrong: head 0 has token 0 whole, as if it were two tokens, and half of token 1; nothing of token 2");
  show("right heads [batch entry, head]", split_heads(x, 2), whole);
  see("right: reshape cuts the last axis only, then permute brings the heads to the front");
}

void queries_of_one_keys_of_another(const CrossAttention& model, const Parameter& queries, const Parameter& keys) {
  section("2. Queries of one sequence, keys and values of another",
          "Two batch entries, width 4, two heads. Two queries look at four keys, each of which comes with its "
          "value; here keys and values are the same.");
  show("queries", queries, {.decimals = 1});
  show("keys = values", keys, {.decimals = 1});
  show_parameters(model);
  const tg::IntArray all{4, 4};
  show("weights [batch entry, head]", model.weights(queries, keys, all));
  see("2 x 4: a row for each query, a column for each key");
  show("output", model(queries, keys, keys, all));
  see("as many rows as there are queries, however many keys there are");
}

void valid_lengths(const CrossAttention& model, const Parameter& queries, const Parameter& keys) {
  section("3. Valid lengths",
          "Only the first keys of an entry are real, the others are padding. A length for each entry, (batch,), "
          "holds for all its queries:");
  const tg::IntArray of_entries{3, 2}, of_queries{{1, 2}, {4, 3}};
  show("valid_lens", of_entries);
  show("weights [batch entry, head]", model.weights(queries, keys, of_entries));
  see("entry 0 sees three keys, entry 1 two, in both heads");
  show("output", model(queries, keys, keys, of_entries));

  say("A length for each query, (batch, queries), as a decoder needs it that must not look ahead:");
  show("valid_lens of queries", of_queries);
  show("weights by query [batch entry, head]", model.weights(queries, keys, of_queries));
  see("row t of entry b sees valid_lens[b, t] keys");
  show("output by query", model(queries, keys, keys, of_queries));

  say("The gradient of mean(output^2), with the lengths of the queries:");
  {
    tg::Tape tape;
    const Tensor output = model(queries, keys, keys, of_queries);
    tg::mean(output * output).backward();
  }
  show("queries.grad", queries.grad());
  show("keys.grad", keys.grad());
  see("the keys 2 and 3 of entry 0, which no query sees, have none; nor has query 0 of entry 0, for the weight "
      "of the only key that it sees is 1 whatever it asks");
}

void dropout_of_the_weights(CrossAttention& model, const Parameter& queries, const Parameter& keys) {
  section("4. Dropout 0.5",
          "In training each weight is set to 0 with probability 0.5, and what remains is doubled, so that the sum "
          "stays about the same. In evaluation, as above, nothing happens.");
  const tg::IntArray lengths{3, 2};
  show("weights in evaluation", model.weights(queries, keys, lengths));
  tg::train(model);
  show("weights in training", model.weights(queries, keys, lengths));
  tg::eval(model);
  see("every weight is 0 or twice what it was; another --seed drops others");
}

void the_textbooks_run() {
  section("5. The textbook's run: (2, 4, 100) out of ones",
          "As in the chapter on multi-head attention of Dive into Deep Learning (d2l.ai): 100 numbers, 5 heads, no "
          "biases, dropout 0.5; X are four queries, Y six keys with their values, all ones; valid lengths 3 and 2.");
  CrossAttention attention(100, 5, 0.5);
  tg::eval(attention);
  std::cout << '\n';
  tg::print(std::cout, attention);

  const Tensor X(Array(tg::Shape{2, 4, 100}, 1)), Y(Array(tg::Shape{2, 6, 100}, 1));
  const tg::IntArray valid_lens{3, 2};
  const Tensor output = attention(X, Y, Y, valid_lens);
  say("X " + tg::to_string(X.shape()) + ", Y " + tg::to_string(Y.shape()) + " -> output " +
      tg::to_string(output.shape()));
  show("weights of head 0 [batch entry]", tg::select(attention.weights(X, Y, valid_lens), 1, 0));
  see("equal keys get equal weights: 1/3 each of the three valid ones, 1/2 each of the two");
  show("output, first 5 of 100 numbers [batch entry]", tg::narrow(output, -1, 0, 5));
  see("all rows are equal, in both entries: the values are equal, and so is any mean of them. The run shows "
      "shapes; what masks do needs values that differ, as above");

  const Tensor one_row(Array(tg::Shape{100}, 1));  // (D)
  Comparison table(1e-12);
  table.add("output", "attention and W_o W_v 1 in every row", output,
            tg::expand(attention.W_o(attention.W_v(one_row)), {2, 4, 100}));
  finish(table);
}

/// Adds the gradients of the mean square of the output.
template <class Model, class Mask>
Tensor sweep(Model& model, const Parameter& queries, const Parameter& keys, const Mask& mask) {
  tg::Tape tape;
  Tensor output = model(queries, keys, keys, mask);
  tg::mean(output * output).backward();
  return output;
}

void the_librarys_layer() {
  section("6. The same as the library's layer",
          "tg::MultiHeadAttention with the same parameters, on random numbers, with both forms of valid_lens. "
          "Gradients are those of mean(output^2).");
  CrossAttention by_hand(100, 5, 0.5);
  tg::MultiHeadAttention<double> layer(100, 5, {.bias = false, .dropout = 0.5});
  tg::eval(by_hand);
  tg::eval(layer);
  layer.q_proj = by_hand.W_q, layer.k_proj = by_hand.W_k, layer.v_proj = by_hand.W_v, layer.out_proj = by_hand.W_o;
  Parameter queries(tg::normal<double>({2, 4, 100})), keys(tg::normal<double>({2, 6, 100}));
  Parameter layer_queries(queries.value()), layer_keys(keys.value());  // with gradients of their own

  Comparison table(1e-12);
  for (const auto& [name, lengths] : {std::pair("(batch,)", tg::IntArray{3, 2}),
                                      std::pair("(batch, queries)", tg::IntArray{{1, 2, 3, 4}, {6, 5, 4, 3}})})
    table.add("output", name, sweep(by_hand, queries, keys, lengths),
              sweep(layer, layer_queries, layer_keys, tg::AttentionMask::valid_lens(lengths)));
  table.add("queries.grad", "", queries.grad(), layer_queries.grad());
  table.add("keys.grad", "", keys.grad(), layer_keys.grad());
  const auto ours = tg::named_parameters(by_hand), theirs = tg::named_parameters(layer);
  for (std::size_t i = 0; i < ours.size(); ++i)
    table.add(ours[i].first + ".grad", "", ours[i].second->grad(), theirs[i].second->grad());
  finish(table);
}

int main(int argc, char** argv) {
  const char* description =
      "Attention with queries of one sequence and keys and values of another, no biases, with valid lengths for "
      "each batch entry or each query and dropout 0.5: heads split and merged by reshape and permute.";
  return run_tutorial(argc, argv, "cross_attention", description, [] {
    splitting_and_merging_heads();

    Parameter queries(random_numbers<double>({2, 2, 4})), keys(random_numbers<double>({2, 4, 4}));
    CrossAttention model(4, 2, 0.5);
    round_parameters(model);
    tg::eval(model);
    queries_of_one_keys_of_another(model, queries, keys);
    valid_lengths(model, queries, keys);
    dropout_of_the_weights(model, queries, keys);

    the_textbooks_run();
    the_librarys_layer();
  });
}
