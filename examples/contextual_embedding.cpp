/// One word in two sentences: attention makes a word's vector depend on the words around it.

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/tutorial.hpp"

namespace tg = tapegrad;
using namespace examples;  // section, show, named, as_step etc. from common/tutorial.hpp
using Tensor = tg::Tensor<float>;
using Parameter = tg::Parameter<float>;
using Array = tg::Array<float>;
using Words = std::vector<std::string>;

const Words vocabulary{"the", "river", "money", "bank"}, features{"water", "money", "grammar"};

/// A vector for every word, chosen by hand so each number has a meaning. Models learn these numbers.
Parameter embedding_table() {
  Parameter table(Array{{0.0f, 0.1f, 1.0f}, {1.9f, 0.1f, 0.0f}, {0.1f, 1.9f, 0.0f}, {1.0f, 1.0f, 0.1f}});  // (words, D)
  table.set_name("table");
  return table;
}

struct Sentence {
  Words words;
  Parameter x;  // (T, D), one row per word; "X" on the page
};

/// A page step about a sentence, with its words as axis labels.
tg::PageStep step_about(const Words& words, const std::string& label) {
  const tg::PageAxis word{"word", vocabulary}, feature{"feature", features}, token{"token", words},
      query{"query", words}, key{"key", words}, one{}, of_width{};
  tg::PageStep step{.label = label + ": ", .axes = {{"table", {word, feature}}, {"mean", {one, feature}}}};
  for (const std::string& each : words) step.label += (&each == words.data() ? "" : " ") + each;
  for (const char* name : {"X", "output"}) step.axes[name] = {token, feature};
  for (const char* name : {"Q", "K", "V"}) step.axes[name] = {token, of_width};
  for (const char* name : {"scores", "e", "weights"}) step.axes[name] = {query, key};
  for (const char* name : {"m", "sum"}) step.axes[name] = {query, one};
  return step;
}

Sentence look_up(tg::Page& page, const Words& words) {
  tg::IntArray ids(tg::Shape{words.size()});
  for (std::size_t t = 0; t < words.size(); ++t)
    ids(t) = std::find(vocabulary.begin(), vocabulary.end(), words[t]) - vocabulary.begin();
  const Tensor vectors = as_step(page, step_about(words, "1. One vector for each word"),
                                 [&] { return named("X", tg::embedding(embedding_table(), ids)); });
  Sentence sentence{words, Parameter(vectors.value())};
  sentence.x.set_name("X");
  return sentence;
}

/// The vectors of the last words of both sentences. -> (2, D)
Tensor last_words(const Tensor& x, const Tensor& y) { return tg::stack({tg::select(x, 0, -1), tg::select(y, 0, -1)}); }

// ---- 1 ------------------------------------------------------------------------------------------------------------

void one_vector_for_each_word(const Sentence& river, const Sentence& money) {
  section("1. One vector for each word, in any sentence",
          "A table gives every word a vector. Its numbers measure how strongly a word relates to water, to "
          "money and to grammar. Here they are chosen by hand; a model learns them.");
  show("embedding table", embedding_table(), {.decimals = 1, .rows = vocabulary, .columns = features});
  see("bank is half water, half money: the table cannot tell which bank is meant");
  show("the river bank", river.x, {.decimals = 1, .rows = river.words, .columns = features});
  show("the money bank", money.x, {.decimals = 1, .rows = money.words, .columns = features});
  see("the last rows are equal: bank has the same vector in both sentences");
}

// ---- 2 ------------------------------------------------------------------------------------------------------------

/// Adds the sentence's mean to every word. x: (T, D) -> (T, D)
Tensor add_mean_of_context(const Tensor& x) {
  return named("output", x + named("mean", tg::mean(x, {0}, tg::keepdims)));
}

void mean_of_the_context_added(tg::Page& page, const Sentence& river, const Sentence& money) {
  const auto with_mean = [&](const Sentence& sentence) {
    return as_step(page, step_about(sentence.words, "2. The mean of the context added"),
                   [&] { return add_mean_of_context(sentence.x); });
  };
  section("2. The mean of the context added",
          "The simplest way to use the context: add the mean of the sentence to every word.");
  show_together({{"mean of the river bank", tg::mean(river.x, {0}, tg::keepdims)},
                 {"mean of the money bank", tg::mean(money.x, {0}, tg::keepdims)}},
                {.columns = features});
  const Tensor river_with_mean = with_mean(river), money_with_mean = with_mean(money);
  show("bank + mean", last_words(river_with_mean, money_with_mean),
       {.rows = {"river bank", "money bank"}, .columns = features});
  see("now they differ: one bank is more water, the other more money");
  see("but 'the' counts as much as 'river', which adds grammar. Words should be weighted by how well they fit");
}

// ---- 3 ------------------------------------------------------------------------------------------------------------

/// The dot product of every query with every key. q: (T, D), k: (S, D) -> (T, S)
Array scores_by_loop(const Array& q, const Array& k, float scale) {
  Array scores(tg::Shape{q.shape()[0], k.shape()[0]}, 0.0f);
  for (std::size_t i = 0; i < q.shape()[0]; ++i)
    for (std::size_t j = 0; j < k.shape()[0]; ++j)
      for (std::size_t d = 0; d < q.shape()[1]; ++d) scores(i, j) += scale * q(i, d) * k(j, d);
  return scores;
}

void scores_by_dot_products(const Sentence& river) {
  section("3. Scores: how well two words fit",
          "The dot product of two vectors is large if they point in the same direction. A loop computes it for "
          "every pair of words.");
  show("scores", scores_by_loop(river.x.value(), river.x.value(), 1), {.rows = river.words, .columns = river.words});
  see("bank fits river and itself, but hardly 'the'");
  see("the scores are symmetric: river fits bank as well as bank fits river");
}

// ---- 4 ------------------------------------------------------------------------------------------------------------

/// The textbook formula exp(x) / sum(exp(x)), which overflows for large x. x: (..., n) -> (..., n)
Tensor softmax_as_written(const Tensor& x) {
  const Tensor e = named("e", tg::exp(x));
  return named("weights", e / named("sum", tg::sum(e, {-1}, tg::keepdims)));
}

/// Softmax with each row's maximum subtracted first.
Tensor softmax(const Tensor& x) { return softmax_as_written(x - named("m", tg::amax(x, {-1}, tg::keepdims))); }

void softmax_by_hand(tg::Page& page, const Sentence& river) {
  section("4. Softmax by hand: from scores to weights",
          "Weights should be positive and sum to 1. The exponential makes every score positive; dividing by "
          "the sum of the row normalizes them.");
  Parameter scores(scores_by_loop(river.x.value(), river.x.value(), 1));
  scores.set_name("scores");
  const Tensor exponentials = tg::exp(scores);
  show_together({{"exp(scores)", exponentials}, {"sum of each row", tg::sum(exponentials, {-1}, tg::keepdims)}},
                {.rows = river.words});
  const Tensor weights =
      as_step(page, step_about(river.words, "4. Softmax by hand"), [&] { return softmax_as_written(scores); });
  show("weights", weights, {.rows = river.words, .columns = river.words});
  see("every row sums to 1: each word distributes a total weight of 1");

  say("Now with large scores. In all three rows the numbers increase by 1 from one to the next, so their "
      "weights should be equal.");
  Parameter rows(Array{{1, 2, 3}, {101, 102, 103}, {-203, -202, -201}});
  rows.set_name("rows");
  show_together({{"rows", rows}, {"exp(rows)", tg::exp(rows)}}, {.decimals = 1});
  const Tensor wrong =
      as_step(page, {.label = "4. Large scores, wrong: as written"}, [&] { return softmax_as_written(rows); });
  const Tensor right =
      as_step(page, {.label = "4. Large scores, right: largest subtracted first"}, [&] { return softmax(rows); });
  show_together({{"wrong softmax: as written", wrong}, {"right softmax: largest subtracted first", right}});
  see("wrong: exp(103) overflows a float, and infinity / infinity is nan (not a number); exp(-201) underflows "
      "to 0, and 0 / 0 is nan, too");
  see("right: exp(x - m) / sum(exp(x - m)): the factor exp(-m) cancels, and the largest exponential is now "
      "exp(0) = 1, so the sum is neither infinite nor 0");
}

// ---- 5 ------------------------------------------------------------------------------------------------------------

/// Attention as loops over queries i, keys j and features d. q: (T, D), k: (S, D), v: (S, D) -> (T, D)
Array attention_by_loop(const Array& q, const Array& k, const Array& v, float scale) {
  const Array scores = scores_by_loop(q, k, scale);
  const std::size_t queries = q.shape()[0], keys = k.shape()[0], width = v.shape()[1];
  Array output(tg::Shape{queries, width}, 0.0f);
  for (std::size_t i = 0; i < queries; ++i) {
    float largest = scores(i, 0), sum = 0;
    for (std::size_t j = 0; j < keys; ++j) largest = std::max(largest, scores(i, j));
    for (std::size_t j = 0; j < keys; ++j) sum += std::exp(scores(i, j) - largest);
    for (std::size_t j = 0; j < keys; ++j)
      for (std::size_t d = 0; d < width; ++d) output(i, d) += std::exp(scores(i, j) - largest) / sum * v(j, d);
  }
  return output;
}

/// Averages the rows of v, weighted by the softmax of the scores. scores: (T, S), v: (S, D) -> (T, D)
Tensor weigh(const Tensor& scores, const Tensor& v) { return named("output", tg::matmul(softmax(scores), v)); }

/// attention_by_loop as two matrix products: softmax(q k^T scale) v.
Tensor attention_by_matrix_product(const Tensor& q, const Tensor& k, const Tensor& v, float scale) {
  return weigh(named("scores", tg::matmul(q, tg::transpose(k, 0, 1)) * scale), v);
}

void compare(Comparison& table, const std::string& name, const Tensor& q, const Tensor& k, const Tensor& v,
             float scale) {
  table.add(name + " scores", "loop and Q K^T", Tensor(scores_by_loop(q.value(), k.value(), scale)),
            tg::matmul(q, tg::transpose(k, 0, 1)) * scale);
  table.add(name + " output", "loop and softmax(Q K^T) V",
            Tensor(attention_by_loop(q.value(), k.value(), v.value(), scale)),
            attention_by_matrix_product(q, k, v, scale));
}

void attention_without_projections(tg::Page& page, const Sentence& river, const Sentence& money) {
  const auto attention = [&](const Sentence& sentence) {
    const Parameter& x = sentence.x;
    return as_step(page, step_about(sentence.words, "5. Attention without projections"),
                   [&] { return weigh(named("scores", tg::matmul(x, tg::transpose(x, 0, 1))), x); });
  };
  section("5. Attention without projections: by loop and by matrix product",
          "The new vector of a word is the mean of all words, weighted by how well they fit: softmax(X X^T) X. "
          "Two matrix products replace the loops.");
  show("X X^T", tg::matmul(river.x, tg::transpose(river.x, 0, 1)), {.rows = river.words, .columns = river.words});
  show_together({{"the river bank, output", attention(river)}, {"the money bank, output", attention(money)}},
                {.rows = {"the", "river|money", "bank"}, .columns = features});
  see("last row: one bank is now mostly water, the other mostly money, and grammar hardly counts");
  Comparison table(1e-6);
  compare(table, "river", river.x, river.x, river.x, 1);
  compare(table, "money", money.x, money.x, money.x, 1);
  finish(table);
}

// ---- 6 ------------------------------------------------------------------------------------------------------------

/// Projections to a word's query (what it asks for), key (what it offers) and value (what it passes on).
struct Projections {
  tg::Linear<> query{3, 3, {.bias = false}}, key{3, 3, {.bias = false}}, value{3, 3, {.bias = false}};
  TAPEGRAD_FIELDS(query, key, value)
};

void attention_with_projections(tg::Page& page, const Sentence& river) {
  section("6. Attention with projections",
          "With three matrices, what a word looks for can differ from what it offers: queries Q = X Wq^T, keys "
          "K = X Wk^T, values V = X Wv^T. A model learns them; here they are random, so try another --seed. "
          "Scores are divided by the square root of the width D = 3 to keep them small for wide vectors.");
  Projections project;
  round_parameters(project);
  project.query.weight.set_name("Wq"), project.key.weight.set_name("Wk"), project.value.weight.set_name("Wv");
  show_together({{"Wq", project.query.weight}, {"Wk", project.key.weight}, {"Wv", project.value.weight}},
                {.decimals = 1});
  const float scale = 1 / std::sqrt(3.0f);
  Tensor q, k, v;  // (T, D)
  const Tensor output = as_step(page, step_about(river.words, "6. Attention with projections"), [&] {
    q = named("Q", project.query(river.x)), k = named("K", project.key(river.x)),
    v = named("V", project.value(river.x));
    return attention_by_matrix_product(q, k, v, scale);
  });
  show_together({{"Q", q}, {"K", k}, {"V", v}}, {.rows = river.words});

  const Tensor scores = tg::matmul(q, tg::transpose(k, 0, 1)) * scale;  // (T, T)
  show_together({{"Q K^T / sqrt(3)", scores}, {"weights by projections", softmax(scores)}},
                {.rows = river.words, .columns = river.words});
  see("the scores are no longer symmetric: the score of river for bank differs from that of bank for river");
  show("output by projections", output, {.rows = river.words});
  Comparison table(1e-6);
  compare(table, "projected", q, k, v, scale);
  finish(table);
}

int main(int argc, char** argv) {
  const char* description =
      "One word in two sentences: from a vector without context to attention, by loops and by matrix "
      "products, without and with projections. Softmax by hand, and why the maximum is subtracted.";
  const tg::PageOptions options{.title = "One word in two sentences"};
  return run_tutorial(argc, argv, "contextual_embedding", description, options, [](tg::Page& page) {
    const Sentence river = look_up(page, {"the", "river", "bank"}), money = look_up(page, {"the", "money", "bank"});
    one_vector_for_each_word(river, money);
    mean_of_the_context_added(page, river, money);
    scores_by_dot_products(river);
    softmax_by_hand(page, river);
    attention_without_projections(page, river, money);
    attention_with_projections(page, river);
  });
}
