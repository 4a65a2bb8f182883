/// Self-attention written by hand at four levels, each adding a feature. The last equals the library's layer.

#include <tapegrad/tapegrad.hpp>

#include <cmath>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "common/tutorial.hpp"

namespace tg = tapegrad;
using namespace examples;  // section, show, named, as_step etc. from common/tutorial.hpp
using Tensor = tg::Tensor<double>;
using Linear = tg::Linear<double>;
using Array = tg::Array<double>;

// Shapes: B sentences of T tokens of width D, H heads.

/// A page step with named axes. With `heads`, q, k, v and the values computed from them have a head axis.
tg::PageStep labelled(const std::string& label, std::size_t tokens, bool heads = false) {
  const std::vector<std::string> labels = numbered("token", tokens);
  const tg::PageAxis batch{"batch"}, head{"head"}, token{"token", labels}, query{"query", labels}, key{"key", labels},
      of_width{};
  using Axes = std::vector<tg::PageAxis>;
  tg::PageStep step{.label = label};
  for (const char* name : {"X", "output"}) step.axes[name] = {batch, token, of_width};
  for (const char* name : {"q", "k", "v"})
    step.axes[name] = heads ? Axes{batch, head, token, of_width} : Axes{batch, token, of_width};
  for (const char* name : {"scores", "masked", "weights", "dropped"})
    step.axes[name] = heads ? Axes{batch, head, query, key} : Axes{batch, query, key};
  for (const char* name : {"cut", "together"}) step.axes[name] = {batch, token, head, of_width};
  return step;
}

/// q: (..., T, D), k: (..., S, D) -> (..., T, S)
Tensor scaled_dot_products(const Tensor& q, const Tensor& k) {
  const auto width = static_cast<double>(q.shape().back());
  return named("scores", tg::matmul(q, tg::transpose(k, -1, -2)) / std::sqrt(width));
}

/// mask: 1 for visible tokens, 0 for hidden ones; broadcasts to scores.
Tensor hide(const Tensor& scores, const tg::IntArray& mask) {
  return named("masked", tg::masked_fill(scores, xt::equal(mask, 0), -1e20));
}

tg::IntArray reshaped(tg::IntArray mask, const tg::Shape& shape) {
  mask.reshape(shape);
  return mask;
}

// ---- the four levels ----------------------------------------------------------------------------------------------

/// Three projections.
struct Level1 {
  Linear q_proj, k_proj, v_proj;
  TAPEGRAD_FIELDS(q_proj, k_proj, v_proj)

  explicit Level1(std::size_t dim) : q_proj(dim, dim), k_proj(dim, dim), v_proj(dim, dim) {}

  Tensor scores(const Tensor& x) const {                                // (B, T, T)
    const Tensor q = named("q", q_proj(x)), k = named("k", k_proj(x));  // (B, T, D)
    return scaled_dot_products(q, k);
  }
  Tensor weights(const Tensor& x) const { return named("weights", tg::softmax(scores(x), -1)); }  // (B, T, T)
  Tensor operator()(const Tensor& x) const {                                                      // (B, T, D)
    const Tensor P = weights(x), v = named("v", v_proj(x));
    return named("output", tg::matmul(P, v));
  }
};

/// qkv: q, k and v concatenated, (B, T, 3 D) -> 3 (B, T, D)
std::vector<Tensor> split_in_three(const Tensor& qkv) {
  auto parts = tg::split(named("qkv", qkv), qkv.shape()[2] / 3, -1);
  parts[0].set_name("q"), parts[1].set_name("k"), parts[2].set_name("v");
  return parts;
}

/// A fused q, k, v projection and an output projection.
struct Level2 {
  Linear qkv_proj, out_proj;
  TAPEGRAD_FIELDS(qkv_proj, out_proj)

  explicit Level2(std::size_t dim) : qkv_proj(dim, 3 * dim), out_proj(dim, dim) {}

  std::vector<Tensor> qkv(const Tensor& x) const { return split_in_three(qkv_proj(x)); }  // 3 (B, T, D)

  Tensor operator()(const Tensor& x) const {  // (B, T, D)
    const auto parts = qkv(x);
    const Tensor weights = named("weights", tg::softmax(scaled_dot_products(parts[0], parts[1]), -1));  // (B, T, T)
    return named("output", out_proj(tg::matmul(weights, parts[2])));
  }
};

/// Adds a padding mask and dropout of the weights.
struct Level3 {
  Linear qkv_proj, out_proj;
  tg::Dropout dropout;
  TAPEGRAD_FIELDS(qkv_proj, out_proj, dropout)

  explicit Level3(std::size_t dim, double p) : qkv_proj(dim, 3 * dim), out_proj(dim, dim), dropout(p) {}

  std::vector<Tensor> qkv(const Tensor& x) const { return split_in_three(qkv_proj(x)); }  // 3 (B, T, D)

  /// mask: (B, T) -> (B, T, T)
  Tensor weights(const Tensor& q, const Tensor& k, const tg::IntArray& mask) const {
    const auto for_queries = reshaped(mask, {q.shape()[0], 1, q.shape()[1]});  // (B, 1, T)
    return dropout(named("weights", tg::softmax(hide(scaled_dot_products(q, k), for_queries), -1)));
  }

  Tensor operator()(const Tensor& x, const tg::IntArray& mask) const {  // (B, T, D)
    const auto parts = qkv(x);
    return named("output", out_proj(tg::matmul(weights(parts[0], parts[1], mask), parts[2])));
  }
};

/// Adds several heads.
struct Level4 {
  std::size_t num_heads;
  Linear q_proj, k_proj, v_proj, out_proj;
  tg::Dropout dropout;
  TAPEGRAD_FIELDS(q_proj, k_proj, v_proj, out_proj, dropout)
  TAPEGRAD_SETTINGS(num_heads)

  explicit Level4(std::size_t dim, std::size_t heads, double p = 0)
      : num_heads(heads), q_proj(dim, dim), k_proj(dim, dim), v_proj(dim, dim), out_proj(dim, dim), dropout(p) {}

  Tensor split_heads(const Tensor& x) const {  // (B, T, D) -> (B, H, T, D / H)
    const auto& s = x.shape();
    return tg::transpose(named("cut", tg::reshape(x, {s[0], s[1], num_heads, s[2] / num_heads})), 1, 2);
  }

  Tensor merge_heads(const Tensor& x) const {  // (B, H, T, D / H) -> (B, T, D)
    const auto& s = x.shape();
    return tg::reshape(named("together", tg::transpose(x, 1, 2)), {s[0], s[2], s[1] * s[3]});
  }

  Tensor scores(const Tensor& x) const {                                                          // (B, H, T, T)
    const Tensor q = named("q", split_heads(q_proj(x))), k = named("k", split_heads(k_proj(x)));  // (B, H, T, D / H)
    return scaled_dot_products(q, k);
  }

  /// mask: (B, T) -> (B, H, T, T)
  Tensor weights(const Tensor& x, const tg::IntArray& mask) const {
    const auto for_heads_and_queries = reshaped(mask, {x.shape()[0], 1, 1, x.shape()[1]});  // (B, 1, 1, T)
    return dropout(named("weights", tg::softmax(hide(scores(x), for_heads_and_queries), -1)));
  }

  Tensor operator()(const Tensor& x, const tg::IntArray& mask) const {  // (B, T, D)
    const Tensor v = named("v", split_heads(v_proj(x))), P = weights(x, mask);
    return named("output", out_proj(merge_heads(tg::matmul(P, v))));
  }
};

// ---- the lesson ---------------------------------------------------------------------------------------------------

void level_1(tg::Page& page, Level1& model, const Tensor& x) {
  section("1. Level 1: three projections",
          "Every token has a query (q), a key (k) and a value (v). Three sentences of two tokens, width 4.");
  show("X", x, {.decimals = 1});
  show_parameters(model);
  show("scores", model.scores(x));
  show("weights", model.weights(x));
  see("each row holds a token's weights of token 0 and token 1; they sum to 1");
  show("output", as_step(page, labelled("1. Level 1: three projections", 2), [&] { return model(x); }));
  see("the output has the shape of X, so layers can be stacked");

  say("The same scores by einsum: for every b, t and s, sum the products over d.");
  const Tensor by_einsum = tg::einsum("btd,bsd->bts", model.q_proj(x), model.k_proj(x)) / std::sqrt(4.0);
  Comparison table(1e-12);
  table.add("scores", "matmul and einsum(\"btd,bsd->bts\")", model.scores(x), by_einsum);
  finish(table);
}

void level_2(tg::Page& page, const Level1& level1, const Tensor& x) {
  section("2. Level 2: one fused projection, and an output projection",
          "Three products with X become one: the three weights are stacked, and the product is split in three. "
          "With level 1's parameters, it gives the same q, k and v.");
  Level2 model(4);
  const auto& [q, k, v] = level1;
  model.qkv_proj.weight.set_value(tg::cat<double>({q.weight, k.weight, v.weight}).value());  // (3 D, D)
  model.qkv_proj.bias.set_value(tg::cat<double>({q.bias, k.bias, v.bias}).value());          // (3 D)
  round_parameters(model);
  show("X W^T + b, all three at once", model.qkv_proj(x), {.decimals = 2});

  const auto parts = model.qkv(x);
  Comparison table(1e-12);
  table.add("q", "level 1's and the first third", level1.q_proj(x), parts[0]);
  table.add("k", "level 1's and the second", level1.k_proj(x), parts[1]);
  table.add("v", "level 1's and the last", level1.v_proj(x), parts[2]);
  finish(table);

  show_together({{"out_proj.weight", model.out_proj.weight}, {"out_proj.bias", model.out_proj.bias}}, {.decimals = 1});
  show("output", as_step(page, labelled("2. Level 2: one fused projection", 2), [&] { return model(x); }));
  see("the output projection mixes the numbers within each token, not across tokens");
}

void level_3(tg::Page& page) {
  section("3. Level 3: a padding mask and dropout",
          "Three sentences of three, two and one tokens, padded to four; width 2. The mask of shape (3, 4) becomes "
          "(3, 1, 4), so it hides the same tokens from every query. Hidden scores are replaced by -1e20.");
  const Tensor x = named("X", Tensor(random_numbers<double>({3, 4, 2})));
  const tg::IntArray mask{{1, 1, 1, 0}, {1, 1, 0, 0}, {1, 0, 0, 0}};
  Level3 model(2, 0.5);
  round_parameters(model);
  show("X", x, {.decimals = 1});
  show("mask", mask);
  show_parameters(model);

  const auto parts = model.qkv(x);
  tg::eval(model);
  show("weights, in evaluation", model.weights(parts[0], parts[1], mask));
  see("columns of hidden tokens are 0; in the last sentence every query attends to its only token");
  show("output, in evaluation",
       as_step(page, labelled("3. Level 3: a padding mask", 4), [&] { return model(x, mask); }));
  tg::train(model);
  show("weights, in training", as_step(page, labelled("3. Level 3: dropout of the weights, in training", 4), [&] {
         const auto in_training = model.qkv(x);
         return named("dropped", model.weights(in_training[0], in_training[1], mask));
       }));
  see("dropout with p = 0.5 sets about half of the weights to 0 and doubles the others, with new random choices at "
      "every call: no token can rely on a single other token");
}

/// Adds a page step: a backward pass from the mean square of the output to the parameters and x. -> x's gradient
template <class Model, class Mask>
Array sweep(tg::Page& page, const tg::PageStep& step, Model& model, tg::Parameter<double> x, const Mask& mask) {
  tg::zero_grad(model);
  return as_step(page, step, [&] {
    const Tensor output = named("output", model(x, mask));
    tg::mean(output * output).backward();
    return x.grad();
  });
}

void level_4(tg::Page& page) {
  section("4. Level 4: several heads",
          "Two heads with half of the width each: q, k and v (3, 2, 4) are split into (3, 2, 2, 2), the axis of "
          "heads moves before the axis of tokens, and each head attends on its own.");
  tg::Parameter<double> x(random_numbers<double>({3, 2, 4}));
  x.set_name("X");
  const tg::IntArray mask{{1, 1}, {1, 0}, {1, 1}};
  Level4 model(4, 2);
  round_parameters(model);
  show("X", x, {.decimals = 1});
  show("mask", mask);
  show_parameters(model);
  show("weights [sentence, head]", model.weights(x, mask));
  see("two heads, two attention patterns; the hidden token of sentence 1 is hidden from both");
  show("output", model(x, mask));
  const tg::PageStep step = labelled("4. Level 4: several heads", 2, true);
  show("gradient of mean(output^2) in X", sweep(page, step, model, x, mask));
  see("token 1 of sentence 1 has no gradient: as a key it is hidden, and as a query it sees a single token, "
      "whose weight is 1 for any query");

  say("The same scores by einsum, without a transpose: the heads stay where reshape put them.");
  const Tensor q = tg::reshape(model.q_proj(x), {3, 2, 2, 2}), k = tg::reshape(model.k_proj(x), {3, 2, 2, 2});
  Comparison table(1e-12);
  table.add("scores", "matmul and einsum(\"bthd,bshd->bhts\")", model.scores(x),
            tg::einsum("bthd,bshd->bhts", q, k) / std::sqrt(2.0));
  finish(table);
}

void level_4_is_the_librarys_layer(tg::Page& page) {
  section("5. Level 4 is the library's layer",
          "tg::MultiHeadAttention with the same parameters: width 128, 8 heads, three sentences of four tokens. "
          "The gradients are of mean(output^2).");
  tg::Parameter<double> x(tg::normal<double>({3, 4, 128}));
  x.set_name("X");
  const tg::IntArray mask{{1, 1, 1, 0}, {1, 1, 0, 0}, {1, 0, 0, 0}};
  const auto library_mask = tg::AttentionMask::key_padding(xt::equal(mask, 1));
  Level4 by_hand(128, 8);
  tg::MultiHeadAttention<double> layer(128, 8);
  layer.q_proj = by_hand.q_proj, layer.k_proj = by_hand.k_proj;
  layer.v_proj = by_hand.v_proj, layer.out_proj = by_hand.out_proj;

  const std::vector<std::vector<std::string>> tokens{{"token 0", "token 1", "token 2", "[pad]"},
                                                     {"token 0", "token 1", "[pad]", "[pad]"},
                                                     {"token 0", "[pad]", "[pad]", "[pad]"}};
  const Array hand_gradient = sweep(page, labelled("5. Level 4 again, width 128", 4, true), by_hand, x, mask);
  tg::PageStep layer_step = labelled("5. The library's layer", 4);
  layer_step.tokens[""] = {.queries = tokens, .keys = tokens};
  const Array layer_gradient = sweep(page, layer_step, layer, x, library_mask);

  Comparison table(1e-12);
  table.add("weights", "", by_hand.weights(x, mask), layer.attention_weights(x, x, library_mask));
  table.add("output", "", by_hand(x, mask), layer(x, library_mask));
  table.add("X.grad", "", hand_gradient, layer_gradient);
  const auto ours = tg::named_parameters(by_hand), theirs = tg::named_parameters(layer);
  for (std::size_t i = 0; i < ours.size(); ++i)
    table.add(ours[i].first + ".grad", "", ours[i].second->grad(), theirs[i].second->grad());
  finish(table);
}

void every_level_on_every_input() {
  section("6. Every level on every input",
          "The output has the shape of the input, for any width and number of tokens.");
  const auto print_row = [](const auto&... cells) {
    std::cout << std::left;
    ((std::cout << "  " << std::setw(11) << cells), ...) << '\n';
  };
  const tg::IntArray two_tokens{{1, 1}, {1, 0}, {1, 1}}, four_tokens{{1, 1, 1, 0}, {1, 1, 0, 0}, {1, 0, 0, 0}};
  const auto run = [&](const tg::Shape& shape, const tg::IntArray& mask, std::size_t heads) {
    const Tensor x(tg::normal<double>(shape));
    const std::size_t dim = shape[2];
    const auto shape_of = [](const Tensor& y) { return tg::to_string(y.shape()); };
    print_row(shape_of(x), tg::to_string(mask.shape()), shape_of(Level1(dim)(x)), shape_of(Level2(dim)(x)),
              shape_of(Level3(dim, 0.1)(x, mask)), shape_of(Level4(dim, heads)(x, mask)));
  };
  std::cout << '\n';
  print_row("X", "mask", "level 1", "level 2", "level 3", "level 4");
  run({3, 2, 4}, two_tokens, 2);
  run({3, 4, 2}, four_tokens, 2);
  run({3, 4, 128}, four_tokens, 8);
}

int main(int argc, char** argv) {
  const char* description =
      "Self-attention written by hand at four levels: three projections; one fused projection and an output "
      "projection; a mask and dropout; several heads. The last level matches the library's layer in values and "
      "gradients.";
  const tg::PageOptions options{.title = "Self-attention at four levels"};
  return run_tutorial(argc, argv, "attention_levels", description, options, [](tg::Page& page) {
    const Tensor x = named("X", Tensor(random_numbers<double>({3, 2, 4})));
    Level1 level1(4);
    round_parameters(level1);
    level_1(page, level1, x);
    level_2(page, level1, x);
    level_3(page);
    level_4(page);
    level_4_is_the_librarys_layer(page);
    every_level_on_every_input();
  });
}
