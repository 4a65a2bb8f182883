/// Hiding tokens from attention: how it is done, and how it goes wrong.

#include <tapegrad/tapegrad.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/tutorial.hpp"

namespace tg = tapegrad;
using namespace examples;  // section, say, see, show and Comparison, from common/tutorial.hpp
using Tensor = tg::Tensor<float>;
using Parameter = tg::Parameter<float>;
using Array = tg::Array<float>;
using Labels = std::vector<std::string>;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Where the mask is 0, the scores are hidden. mask broadcasts to scores.
Tensor fill_hidden(const Tensor& scores, const tg::IntArray& mask, float value) {
  return tg::masked_fill(scores, xt::equal(mask, 0), value);
}

// ---- 1 ------------------------------------------------------------------------------------------------------------

void multiplying_by_0_does_not_mask() {
  section("1. Multiplying scores by 0 does not mask",
          "Three words, filled up to four tokens. Nobody should attend to the padding, where the mask is 0.");
  const Labels words{"the", "cat", "sat", "[pad]"};
  const Tensor scores(random_numbers<float>({1, 4}));
  const tg::IntArray mask{{1, 1, 1, 0}};
  show_beside({{"scores of sat", scores}, {"mask", mask}}, {.decimals = 1, .columns = words});

  const Tensor multiplied = scores * Tensor(mask), filled = fill_hidden(scores, mask, -infinity);
  show_beside({{"wrong: scores * mask", multiplied}, {"wrong weights", tg::softmax(multiplied, -1)}},
              {.columns = words});
  see("wrong: a score of 0 is not nothing, for exp(0) = 1. The padding gets weight, more than any word with "
      "a negative score");
  show_beside({{"right: -inf where mask == 0", filled}, {"right weights", tg::softmax(filled, -1)}},
              {.columns = words});
  see("right: exp(-inf) = 0. The padding gets no weight, and the others share what it had");

  say("The gradient tells whether padding leaks into what attention gives out, weights V.");
  Parameter v(random_numbers<float>({4, 1}));
  // (4, 1): how the output changes with each word's value
  const auto gradient = [&](const Tensor& masked) {
    tg::Tape tape;
    v.zero_grad();
    tg::matmul(tg::softmax(masked, -1), v).backward();
    return v.grad();
  };
  show_beside({{"wrong V.grad", gradient(multiplied)}, {"right V.grad", gradient(filled)}}, {.rows = words});
  see("wrong: training would change the padding's vector; right: it gets no gradient at all");
}

// ---- 2 ------------------------------------------------------------------------------------------------------------

void fills_and_fully_hidden_rows() {
  section("2. Filling with -10000, -1e20 and -inf, and rows where everything is hidden",
          "The first query may attend to the words a and b, the second to none, as happens in padding.");
  const Labels keys{"a", "b", "c", "d"};
  const Tensor scores(random_numbers<float>({2, 4}));
  const tg::IntArray mask{{1, 1, 0, 0}, {0, 0, 0, 0}};
  Parameter v(random_numbers<float>({4, 1}));
  show_beside({{"scores", scores}, {"mask", mask}},
              {.decimals = 1, .rows = {"sees a, b", "sees none"}, .columns = keys});
  show("V", v, {.decimals = 1, .rows = keys});

  std::vector<Tensor> sees_a_b, sees_none, gradients;
  const auto use = [&](const auto& masked_weights) {
    tg::Tape tape;
    v.zero_grad();
    const Tensor weights = masked_weights();  // (2, 4)
    tg::sum(tg::matmul(weights, v)).backward();
    sees_a_b.push_back(tg::select(weights, 0, 0));
    sees_none.push_back(tg::select(weights, 0, 1));
    gradients.emplace_back(v.grad());  // (4, 1)
  };
  for (const float fill : {-10000.0f, -1e20f, -infinity})
    use([&] { return tg::softmax(fill_hidden(scores, mask, fill), -1); });
  use([&] { return tg::masked_softmax(scores, tg::AttentionMask::boolean(xt::equal(mask, 1))); });

  const Labels ways{"fill -10000", "fill -1e20", "fill -inf", "masked_softmax"};
  show("weights of the row that sees a and b", tg::stack(sees_a_b), {.rows = ways, .columns = keys});
  see("where something is left to see, all four hide alike, as long as no real score comes near the fill: -10000 may "
      "be too close, and half precision has no -1e20, it becomes -inf");
  show("weights of the row that sees none", tg::stack(sees_none), {.rows = ways, .columns = keys});
  see("-10000, -1e20: four equal scores make four equal weights: the row sees all that it must not see");
  see("-inf: the largest of the row is -inf, and -inf - (-inf) is nan");
  see("masked_softmax, as all attention of the library: nothing to see gives zeros");
  show("gradient of each value in V", tg::squeeze(tg::stack(gradients), -1), {.rows = ways, .columns = keys});
  see("-10000, -1e20: c and d, which nobody may see, get a gradient, from the row that sees none");
  see("-inf: one row of nan makes the whole gradient nan, and after one step all parameters");
  see("masked_softmax: the row that sees none adds nothing");
}

// ---- 3 ------------------------------------------------------------------------------------------------------------

/// Attention of x with itself, without projections. x: (T, D), mask: (T, T) -> weights (T, T)
Tensor self_attention_weights(const Tensor& x, const tg::IntArray& mask) {
  const Tensor scores = tg::matmul(x, tg::transpose(x, 0, 1)) / std::sqrt(static_cast<float>(x.shape()[1]));
  return tg::softmax(fill_hidden(scores, mask, -infinity), -1);
}

void causal_triangle() {
  section("3. The causal triangle",
          "A model that predicts the next word must not see it: word t attends to the words 0 to t. The mask is "
          "the lower triangle of ones.");
  const Labels words{"the", "cat", "sat", "down"};
  Parameter x(random_numbers<float>({4, 2}));
  const tg::IntArray mask = tg::causal_mask(4, 4);
  show_beside({{"X", x}, {"mask", mask}}, {.decimals = 1, .rows = words});

  tg::Tape tape;
  const Tensor weights = self_attention_weights(x, mask);
  const Tensor output = tg::matmul(weights, x);
  show_beside({{"causal weights", weights}, {"causal output", output}}, {.rows = words});
  see("zeros above the diagonal; the first word has only itself to attend to");

  say("Who depends on whom? How much each word's output changes with every word in X, by the tape's gradients.");
  Array dependence(tg::Shape{4, 4});  // of sums over the numbers of a word
  for (std::size_t i = 0; i < 4; ++i) {
    x.zero_grad();
    tg::sum(tg::select(output, 0, i)).backward(tg::retain_graph);
    for (std::size_t j = 0; j < 4; ++j) dependence(i, j) = std::abs(x.grad()(j, 0)) + std::abs(x.grad()(j, 1));
  }
  show("dependence: sums of |gradient|", dependence, {.rows = words, .columns = words});
  see("above the diagonal not small but 0: no output can tell what comes after it");
}

// ---- 4 ------------------------------------------------------------------------------------------------------------

void padding_mask_from_ids() {
  section("4. The padding mask, built from token ids",
          "Sentences of different lengths are filled up with id 0 to make an array. Where the id is not 0 is a "
          "word. Vocabulary: 0 [pad], 1 the, 2 cat, 3 sat, 4 dog, 5 ran, 6 home.");
  const tg::IntArray ids{{1, 2, 3, 0}, {1, 4, 5, 6}};   // (B, T)
  const tg::BoolArray is_word = xt::not_equal(ids, 0);  // (B, T)
  show_beside({{"ids", ids}, {"mask = ids != 0", is_word}}, {.rows = {"the cat sat", "the dog ran home"}});

  const Tensor scores(random_numbers<float>({2, 4, 4}));  // (B, T, T)
  show("scores", scores, {.decimals = 1});
  tg::IntArray mask = is_word;
  mask.reshape({2, 1, 4});  // (B, 1, T): the same keys are hidden from all queries of a sentence
  show("padding mask", mask);
  show("padding weights", tg::softmax(fill_hidden(scores, mask, -infinity), -1));
  see("the shape (2, 1, 4) stretches to that of the scores: sentence 0 loses its last column");

  const tg::IntArray both = mask * tg::IntArray(tg::causal_mask(4, 4));  // (B, T, T)
  const Tensor weights = tg::softmax(fill_hidden(scores, both, -infinity), -1);
  show("padding mask * causal mask", both);
  show("padding and causal weights", weights);
  see("a key is seen where both masks are 1");

  say("The library's masks say the same without shapes to think of.");
  Comparison table(1e-6);
  table.add("weights", "key_padding(mask) & causal()", weights,
            tg::masked_softmax(scores, tg::AttentionMask::key_padding(is_word) & tg::AttentionMask::causal()));
  finish(table);
}

// ---- 5 ------------------------------------------------------------------------------------------------------------

void comparing_the_scores_instead_of_the_mask() {
  section("5. A well-known mistake: comparing the scores with 0 instead of the mask",
          "One word too few, and the program runs on: masked_fill(scores, scores == 0, -inf).");
  const Labels words{"the", "cat", "sat", "[pad]"};
  const Tensor scores(Array{{0.8f, 0.0f, -0.5f, 1.2f}});
  const tg::IntArray mask{{1, 1, 1, 0}};
  show_beside({{"scores", scores}, {"mask", mask}}, {.decimals = 1, .columns = words});
  show("wrong weights: scores == 0", tg::softmax(tg::masked_fill(scores, xt::equal(scores.value(), 0), -infinity), -1),
       {.columns = words});
  see("wrong: the padding is not hidden, it gets the most; cat, whose score happens to be 0, is hidden");
  show("right weights: mask == 0", tg::softmax(tg::masked_fill(scores, xt::equal(mask, 0), -infinity), -1),
       {.columns = words});
  see("right: the padding has weight 0, cat has its share. Real scores are hardly ever exactly 0: the mistake "
      "then hides nothing at all, and only a test like this one shows it");
}

// ---- 6 ------------------------------------------------------------------------------------------------------------

void a_mask_that_lands_on_heads() {
  section("6. A well-known mistake: a (batch, T, T) mask for (batch, heads, T, T) scores",
          "Two sentences of three and of two words, two heads. Shapes are aligned at their last axes: the mask's "
          "(2, 3, 3) is taken as (1, 2, 3, 3), and the mask of sentence b lands on head b of every sentence.");
  const Tensor scores(random_numbers<float>({2, 2, 3, 3}));                                 // (B, H, T, T)
  tg::IntArray mask{{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {{1, 1, 0}, {1, 1, 0}, {1, 1, 0}}};  // (B, T, T)
  show("scores", scores, {.decimals = 1});
  show("mask", mask);
  show("wrong weights", tg::softmax(fill_hidden(scores, mask, -infinity), -1));
  see("wrong: [0, 1] hides the last word of sentence 0, which has no padding");
  see("wrong: [1, 0] attends to the last word of sentence 1, which is padding");

  tg::IntArray for_heads = mask;
  for_heads.reshape({2, 1, 3, 3});  // (B, 1, T, T)
  show("right weights", tg::softmax(fill_hidden(scores, for_heads, -infinity), -1));
  see("right: the mask as (2, 1, 3, 3), with an axis for the heads, keeps the sentences apart: both heads of "
      "sentence 1 see two words");

  say("With three heads the mistake ends in an error. It goes unnoticed where there happen to be as "
      "many heads as sentences in a batch:");
  try {
    fill_hidden(Tensor(random_numbers<float>({2, 3, 3, 3})), mask, -infinity);
  } catch (const std::invalid_argument& error) {
    say(error.what());
  }
}

int main(int argc, char** argv) {
  const char* description =
      "Hiding tokens from attention: why multiplying by 0 does not, what -10000, -1e20 and -inf do, the causal "
      "triangle, the padding mask built from token ids, and two well-known mistakes, shown failing and mended.";
  return run_tutorial(argc, argv, "masking", description, [] {
    multiplying_by_0_does_not_mask();
    fills_and_fully_hidden_rows();
    causal_triangle();
    padding_mask_from_ids();
    comparing_the_scores_instead_of_the_mask();
    a_mask_that_lands_on_heads();
  });
}
