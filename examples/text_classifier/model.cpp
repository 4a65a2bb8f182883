#include "model.hpp"

#include <xtensor/xbuilder.hpp>

namespace tg = tapegrad;
using Tensor = tg::Tensor<float>;

namespace {

/// Naive Bayes takes dependent features for independent ones, so its scores are too large.
constexpr float initial_prior_weight = 0.3F;

/// Vectors for the ids 0, ..., rows - 1. The vector of `zeros`, if given, is zero and is not trained.
tg::Embedding<> make_table(std::size_t rows, const ClassifierOptions& options, std::optional<std::int64_t> zeros = {}) {
  tg::Embedding<> table(rows, options.width, {.padding_idx = zeros});
  table.weight.set_value(table.weight.value() * static_cast<float>(options.init_std));
  return table;
}

/// The unknown token's id if every training token has its own vector. The unknown token then never occurs in training,
/// and its initial vector would only add noise to texts with new words.
std::optional<std::int64_t> never_learned(const ClassifierOptions& options) {
  if (options.min_count > 1) return {};
  return examples::Vocabulary::unknown;
}

/// Drops whole vectors along the last axis. x: (B, T, D) -> (B, T, D)
Tensor drop_vectors(const Tensor& x, const tg::Dropout& dropout) {
  if (!dropout.training || dropout.p == 0) return x;
  const tg::Array<float> ones = xt::ones<float>({x.shape()[0], x.shape()[1], std::size_t{1}});
  return x * dropout(Tensor(ones));
}

/// The mean over the real tokens. x: (B, T, D), keep: (B, T), true for real tokens, false for padding -> (B, D)
Tensor mean_of_kept(const Tensor& x, const tg::BoolArray& keep) {
  const tg::Array<float> kept = xt::cast<float>(keep);
  const tg::Array<float> lengths = xt::sum(kept, {1}, xt::keep_dims);  // (B, 1); named, see docs/xtensor.md
  const tg::Array<float> share = kept / lengths;                       // (B, T), 1 over the length or 0
  return tg::einsum("bt,btd->bd", Tensor(share), x);
}

}  // namespace

Model::Model(std::size_t vocabulary, const IdPairs& known_pairs, std::size_t classes, const ClassifierOptions& options)
    : embedding(make_table(vocabulary, options, never_learned(options))),
      token_dropout(options.token_dropout),
      dropout(options.dropout),
      attention(options.width, options.heads),
      residual(options.residual),
      head(options.width, classes) {
  if (!known_pairs.empty()) pairs.emplace(known_pairs, options.width, options.init_std);
  if (options.prior) prior_weight = tg::Parameter<float>(tg::Array<float>(tg::Shape{1}, initial_prior_weight));
  if (options.positions) positions = make_table(options.max_length, options);
}

Tensor Model::operator()(const tg::IntArray& ids, const tg::BoolArray& keep, const tg::Array<float>& prior) const {
  const Tensor x = vectors(ids);
  return decide(x, attention(x, tg::AttentionMask::key_padding(keep)), keep, prior);
}

std::pair<Tensor, Tensor> Model::with_weights(const tg::IntArray& ids, const tg::BoolArray& keep,
                                              const tg::Array<float>& prior) const {
  const Tensor x = vectors(ids);
  const auto [y, weights] = attention.with_weights(x, x, x, tg::AttentionMask::key_padding(keep));
  return {decide(x, y, keep, prior), weights};
}

/// (B, T) -> (B, T, D)
Tensor Model::vectors(const tg::IntArray& ids) const {
  Tensor x = drop_vectors(embedding(ids), token_dropout);
  if (pairs) x += drop_vectors((*pairs)(ids), token_dropout);
  if (positions) x += (*positions)(tg::arange(ids.shape()[1]));  // (T, D) broadcasts over the batch
  return dropout(x);
}

/// x, and found, the attention's output: (B, T, D), keep: (B, T) -> (B, classes)
Tensor Model::decide(const Tensor& x, const Tensor& found, const tg::BoolArray& keep,
                     const tg::Array<float>& prior) const {
  Tensor logits = head(mean_of_kept(residual ? x + found : found, keep));
  if (prior_weight.defined()) logits += prior_weight * Tensor(prior);
  return logits;
}
