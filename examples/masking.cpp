/// Hiding tokens from attention: correct masks and common mistakes.

#include <tapegrad/tapegrad.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/tutorial.hpp"

namespace tg = tapegrad;
using namespace examples;  // section, show, named, as_step etc. from common/tutorial.hpp
using Tensor = tg::Tensor<float>;
using Parameter = tg::Parameter<float>;
using Array = tg::Array<float>;
using Labels = std::vector<std::string>;

constexpr float infinity = std::numeric_limits<float>::infinity();

const tg::PageAxis batch{"batch"}, head{"head"}, of_width{};

/// The page axes of scores, masked scores and weights. batch_and_head: the axes before the last two.
tg::PageAxes axes_of_scores(const Labels& queries, const Labels& keys,
                            const std::vector<tg::PageAxis>& batch_and_head = {}) {
  std::vector<tg::PageAxis> axes = batch_and_head;
  axes.insert(axes.end(), {{"query", queries}, {"key", keys}});
  return {{"scores", axes}, {"masked", axes}, {"weights", axes}};
}

/// Replaces scores with value where the mask is 0. The mask broadcasts to scores.
Tensor fill_hidden(const Tensor& scores, const tg::IntArray& mask, float value) {
  return named("masked", tg::masked_fill(scores, xt::equal(mask, 0), value));
}

// ---- 1 ------------------------------------------------------------------------------------------------------------

void multiplying_by_0_does_not_mask(tg::Page& page) {
  section("1. Multiplying scores by 0 does not mask",
          "Three words, padded to four tokens. No query should attend to the padding, where the mask is 0.");
  const Labels words{"the", "cat", "sat", "[pad]"};
  Parameter scores(random_numbers<float>({1, 4})), v(random_numbers<float>({4, 1}));
  const tg::IntArray mask{{1, 1, 1, 0}};
  scores.set_name("scores"), v.set_name("V");
  show_together({{"scores of sat", scores}, {"mask", mask}}, {.decimals = 1, .columns = words});

  tg::PageAxes axes = axes_of_scores({"sat"}, words);
  axes["mask"] = axes["scores"], axes["V"] = {{"key", words}, of_width};
  struct Attention {
    Tensor masked, weights;  // (1, 4)
    Array gradient;          // (4, 1), of the output with respect to V
  };
  const auto attend = [&](const std::string& label, const auto& masked_scores) {
    return as_step(page, {.label = label, .axes = axes}, [&] {
      v.zero_grad();
      const Tensor masked = named("masked", masked_scores()), weights = named("weights", tg::softmax(masked, -1));
      named("output", tg::matmul(weights, v)).backward();
      return Attention{masked, weights, v.grad()};
    });
  };
  const Attention wrong = attend("1. Wrong: scores * mask", [&] { return scores * named("mask", Tensor(mask)); });
  const Attention right =
      attend("1. Right: -inf where mask == 0", [&] { return fill_hidden(scores, mask, -infinity); });
  show_together({{"wrong: scores * mask", wrong.masked}, {"wrong weights", wrong.weights}}, {.columns = words});
  see("wrong: a score of 0 still counts, since exp(0) = 1. The padding gets more weight than any word with a "
      "negative score");
  show_together({{"right: -inf where mask == 0", right.masked}, {"right weights", right.weights}}, {.columns = words});
  see("right: exp(-inf) = 0. The padding gets no weight, and the words share it");

  say("The gradient of V tells whether padding leaks into the output, weights V.");
  show_together({{"wrong V.grad", wrong.gradient}, {"right V.grad", right.gradient}}, {.rows = words});
  see("wrong: training would change the padding's vector; right: it gets no gradient");
}

// ---- 2 ------------------------------------------------------------------------------------------------------------

void fills_and_fully_hidden_rows(tg::Page& page) {
  section("2. Filling with -10000, -1e20 and -inf, and rows with all keys hidden",
          "The first query may attend to the words a and b, the second to none, as in padding.");
  const Labels queries{"sees a, b", "sees none"}, keys{"a", "b", "c", "d"};
  Parameter scores(random_numbers<float>({2, 4})), v(random_numbers<float>({4, 1}));
  const tg::IntArray mask{{1, 1, 0, 0}, {0, 0, 0, 0}};
  scores.set_name("scores"), v.set_name("V");
  show_together({{"scores", scores}, {"mask", mask}}, {.decimals = 1, .rows = queries, .columns = keys});
  show("V", v, {.decimals = 1, .rows = keys});

  std::vector<Tensor> sees_a_b, sees_none, gradients;
  const Labels methods{"fill -10000", "fill -1e20", "fill -inf", "masked_softmax"};
  tg::PageAxes axes = axes_of_scores(queries, keys);
  axes["V"] = {{"key", keys}, of_width}, axes["output"] = {{"query", queries}, of_width};
  const auto use = [&](const auto& masked_weights) {
    const Tensor weights = as_step(page, {.label = "2. " + methods[gradients.size()], .axes = axes}, [&] {
      v.zero_grad();
      Tensor made = named("weights", masked_weights());  // (2, 4)
      tg::sum(named("output", tg::matmul(made, v))).backward();
      return made;
    });
    sees_a_b.push_back(tg::select(weights, 0, 0));
    sees_none.push_back(tg::select(weights, 0, 1));
    gradients.emplace_back(v.grad());  // (4, 1)
  };
  for (const float fill : {-10000.0f, -1e20f, -infinity})
    use([&] { return tg::softmax(fill_hidden(scores, mask, fill), -1); });
  use([&] { return tg::masked_softmax(scores, tg::AttentionMask::boolean(xt::equal(mask, 1))); });

  show("weights of the row that sees a and b", tg::stack(sees_a_b), {.rows = methods, .columns = keys});
  see("in a row with visible keys, all four give the same weights, unless a real score is close to the fill: -10000 "
      "may be too close, and in half precision -1e20 becomes -inf");
  show("weights of the row that sees none", tg::stack(sees_none), {.rows = methods, .columns = keys});
  see("-10000, -1e20: four equal scores give four equal weights: the row sees all hidden keys");
  see("-inf: the row's maximum is -inf, and -inf - (-inf) is nan");
  see("masked_softmax, like all attention in the library: a row without visible keys gets zeros");
  show("gradient of each value in V", tg::squeeze(tg::stack(gradients), -1), {.rows = methods, .columns = keys});
  see("-10000, -1e20: c and d are hidden from all queries, yet get a gradient from the row that sees none");
  see("-inf: one row of nan makes the whole gradient nan, and after one step all parameters, too");
  see("masked_softmax: the row that sees none contributes nothing");
}

// ---- 3 ------------------------------------------------------------------------------------------------------------

/// Self-attention weights without projections. x: (T, D), mask: (T, T) -> (T, T)
Tensor self_attention_weights(const Tensor& x, const tg::IntArray& mask) {
  const auto width = static_cast<float>(x.shape()[1]);
  const Tensor scores = named("scores", tg::matmul(x, tg::transpose(x, 0, 1)) / std::sqrt(width));
  return named("weights", tg::softmax(fill_hidden(scores, mask, -infinity), -1));
}

void causal_triangle(tg::Page& page) {
  section("3. The causal triangle",
          "A model that predicts the next word must not see it: word t attends to the words 0 to t. The mask is "
          "the lower triangle of ones.");
  const Labels words{"the", "cat", "sat", "down"};
  Parameter x(random_numbers<float>({4, 2}));
  const tg::IntArray mask = tg::causal_mask(4, 4);
  x.set_name("X");
  show_together({{"X", x}, {"mask", mask}}, {.decimals = 1, .rows = words});

  tg::PageAxes axes = axes_of_scores(words, words);
  axes["X"] = axes["output"] = {{"token", words}, of_width};
  const Tensor weights = self_attention_weights(x, mask);
  const Tensor output = tg::matmul(weights, x);
  show_together({{"causal weights", weights}, {"causal output", output}}, {.rows = words});
  see("zeros above the diagonal; the first word attends only to itself");

  say("Which outputs depend on which words? The tape's gradients of each word's output with respect to X tell.");
  Array dependence(tg::Shape{4, 4});  // |gradient| summed over each word's vector
  for (std::size_t i = 0; i < 4; ++i) {
    as_step(page, {.label = "3. The causal triangle: what " + words[i] + " depends on", .axes = axes}, [&] {
      x.zero_grad();
      const Tensor all = named("output", tg::matmul(self_attention_weights(x, mask), x));
      tg::sum(named(words[i], tg::select(all, 0, i))).backward();
    });
    for (std::size_t j = 0; j < 4; ++j) dependence(i, j) = std::abs(x.grad()(j, 0)) + std::abs(x.grad()(j, 1));
  }
  show("dependence: sums of |gradient|", dependence, {.rows = words, .columns = words});
  see("exactly 0 above the diagonal: no output depends on later words");
}

// ---- 4 ------------------------------------------------------------------------------------------------------------

/// Adds the computation of the weights as a page step. scores: (..., T, S) -> (..., T, S)
Tensor masked_weights(tg::Page& page, const tg::PageStep& step, const Tensor& scores, const tg::BoolArray& hidden) {
  return as_step(page, step, [&] {
    return named("weights", tg::softmax(named("masked", tg::masked_fill(scores, hidden, -infinity)), -1));
  });
}

void padding_mask_from_ids(tg::Page& page) {
  section("4. The padding mask, built from token ids",
          "Sentences of different lengths are padded with id 0 to form an array. Ids other than 0 are words. "
          "Vocabulary: 0 [pad], 1 the, 2 cat, 3 sat, 4 dog, 5 ran, 6 home.");
  const tg::IntArray ids{{1, 2, 3, 0}, {1, 4, 5, 6}};   // (B, T)
  const tg::BoolArray is_word = xt::not_equal(ids, 0);  // (B, T)
  const Labels sentences{"the cat sat", "the dog ran home"};
  show_together({{"ids", ids}, {"mask = ids != 0", is_word}}, {.rows = sentences});

  Parameter scores(random_numbers<float>({2, 4, 4}));  // (B, T, T)
  scores.set_name("scores");
  show("scores", scores, {.decimals = 1});
  tg::IntArray mask = is_word;
  mask.reshape({2, 1, 4});  // (B, 1, T): hides the same keys from all queries of a sentence
  show("padding mask", mask);
  const auto weights_under = [&](const std::string& name, const tg::IntArray& its_mask) {
    const tg::PageAxes axes = axes_of_scores({}, {}, {{"batch", sentences}});
    return masked_weights(page, {.label = "4. " + name, .axes = axes}, scores, xt::equal(its_mask, 0));
  };
  show("padding weights", weights_under("Padding mask", mask));
  see("the shape (2, 1, 4) is broadcast to that of the scores: the last column of sentence 0 is hidden");

  const tg::IntArray both = mask * tg::IntArray(tg::causal_mask(4, 4));  // (B, T, T)
  const Tensor weights = weights_under("Padding mask * causal mask", both);
  show("padding mask * causal mask", both);
  show("padding and causal weights", weights);
  see("a key is visible if both masks are 1");

  say("The library's masks do the same and take care of the shapes.");
  Comparison table(1e-6);
  table.add("weights", "key_padding(mask) & causal()", weights,
            tg::masked_softmax(scores, tg::AttentionMask::key_padding(is_word) & tg::AttentionMask::causal()));
  finish(table);
}

// ---- 5 ------------------------------------------------------------------------------------------------------------

void comparing_the_scores_instead_of_the_mask(tg::Page& page) {
  section("5. A well-known mistake: comparing the scores with 0 instead of the mask",
          "A small slip without an error message: masked_fill(scores, scores == 0, -inf).");
  const Labels words{"the", "cat", "sat", "[pad]"};
  Parameter scores(Array{{0.8f, 0.0f, -0.5f, 1.2f}});
  const tg::IntArray mask{{1, 1, 1, 0}};
  const tg::PageAxes axes = axes_of_scores({}, words);
  scores.set_name("scores");
  show_together({{"scores", scores}, {"mask", mask}}, {.decimals = 1, .columns = words});
  show("wrong weights: scores == 0",
       masked_weights(page, {.label = "5. Wrong: scores == 0", .axes = axes}, scores, xt::equal(scores.value(), 0)),
       {.columns = words});
  see("wrong: the padding is not hidden and gets the largest weight; cat is hidden because its score is 0");
  show("right weights: mask == 0",
       masked_weights(page, {.label = "5. Right: mask == 0", .axes = axes}, scores, xt::equal(mask, 0)),
       {.columns = words});
  see("right: the padding has weight 0, and cat gets weight. Real scores are hardly ever exactly 0. Then the "
      "mistake hides nothing at all, and only a test like this one reveals it");
}

// ---- 6 ------------------------------------------------------------------------------------------------------------

void a_mask_that_lands_on_heads(tg::Page& page) {
  section("6. A well-known mistake: a (batch, T, T) mask for (batch, heads, T, T) scores",
          "Two sentences of three and of two words, two heads. Broadcasting aligns the last axes: the mask's shape "
          "(2, 3, 3) becomes (1, 2, 3, 3), so the mask of sentence b applies to head b of every sentence.");
  Parameter scores(random_numbers<float>({2, 2, 3, 3}));                                    // (B, H, T, T)
  tg::IntArray mask{{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {{1, 1, 0}, {1, 1, 0}, {1, 1, 0}}};  // (B, T, T)
  const tg::PageAxes axes = axes_of_scores({}, {}, {batch, head});
  scores.set_name("scores");
  show("scores", scores, {.decimals = 1});
  show("mask", mask);
  show("wrong weights",
       masked_weights(page, {.label = "6. Wrong: a mask of (2, 3, 3)", .axes = axes}, scores, xt::equal(mask, 0)));
  see("wrong: [0, 1] hides the last word of sentence 0, which has no padding");
  see("wrong: [1, 0] attends to the last word of sentence 1, which is padding");

  tg::IntArray for_heads = mask;
  for_heads.reshape({2, 1, 3, 3});  // (B, 1, T, T)
  show("right weights", masked_weights(page, {.label = "6. Right: a mask of (2, 1, 3, 3)", .axes = axes}, scores,
                                       xt::equal(for_heads, 0)));
  see("right: a mask of (2, 1, 3, 3), with an axis for the heads, applies to its own sentence: both heads of "
      "sentence 1 see two words");

  say("With three heads the mistake raises an error. It goes unnoticed if the number of heads happens to equal "
      "the number of sentences in the batch:");
  try {
    fill_hidden(Tensor(random_numbers<float>({2, 3, 3, 3})), mask, -infinity);
  } catch (const std::invalid_argument& error) {
    say(error.what());
  }
}

int main(int argc, char** argv) {
  const char* description =
      "Hiding tokens from attention: why multiplying by 0 fails, what -10000, -1e20 and -inf do, the causal "
      "triangle, the padding mask built from token ids, and two well-known mistakes with their fixes.";
  const tg::PageOptions options{.title = "Hiding tokens from attention"};
  return run_tutorial(argc, argv, "masking", description, options, [](tg::Page& page) {
    multiplying_by_0_does_not_mask(page);
    fills_and_fully_hidden_rows(page);
    causal_triangle(page);
    padding_mask_from_ids(page);
    comparing_the_scores_instead_of_the_mask(page);
    a_mask_that_lands_on_heads(page);
  });
}
