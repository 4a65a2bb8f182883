/// Complete models: forward, backward and 50 training steps. fixtures/models.json holds PyTorch's results for the same
/// models, written by fixtures/make_models.py, which defines them in PyTorch.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xview.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../operations/table.hpp"
#include "close.hpp"
#include "model_fixtures.hpp"

namespace tg = tapegrad;

namespace {

using Mask = tg::AttentionMask;
using operations::draw, operations::numbers;

constexpr std::size_t kBatch = 3, kTime = 5;
constexpr std::int64_t kPadding = 0;

// Ids from first to last - 1.
tg::IntArray drawn_ids(const tg::Shape& shape, std::int64_t first, std::int64_t last, std::uint64_t key) {
  tg::IntArray ids(shape);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids.data()[i] = first + static_cast<std::int64_t>(static_cast<double>(last - first) * tg::random_uniform(key, i));
  return ids;
}

tg::IntArray lengths() { return {5, 2, 3}; }
tg::IntArray lengths_of_queries() { return {{1, 2, 3, 4, 5}, {5, 5, 0, 9, 2}, {3, 1, 4, 1, 5}}; }

tg::IntArray unpadded_ids() { return drawn_ids({kBatch, kTime}, 1, 6, 100); }  // (B, T), no padding

tg::IntArray padded_ids() {
  tg::IntArray ids = unpadded_ids();
  for (std::size_t b = 0; b < kBatch; ++b) xt::view(ids, b, xt::range(lengths()(b), kTime)) = kPadding;
  return ids;
}

// The id after each one, in the flattened ids.
tg::IntArray next(const tg::IntArray& ids) { return xt::roll(ids, -1); }

template <class T> struct Classifier {
  tg::IntArray ids;  // (B, T)
  Mask mask;
  tg::Embedding<T> embedding{6, 4, {.padding_idx = kPadding}};
  tg::MultiHeadAttention<T> attention;
  tg::Linear<T> head{4, 3};
  TAPEGRAD_FIELDS(embedding, attention, head)

  Classifier(std::size_t heads, const tg::IntArray& texts, const Mask& seen)
      : ids(texts), mask(seen), attention(4, heads) {}

  tg::Tensor<T> operator()() const {
    const tg::Tensor<T> x = attention(embedding(ids), mask);  // (B, T, D)
    const tg::BoolArray keep = tg::padding_mask(ids, kPadding);
    return head(xt::all(keep) ? tg::mean(x, {1}) : mean_of_kept(x, keep));
  }

  static tg::Tensor<T> mean_of_kept(const tg::Tensor<T>& x, const tg::BoolArray& keep) {
    const tg::Array<T> kept = xt::cast<T>(keep);
    const tg::Array<T> lengths = xt::sum(kept, {1}, xt::keep_dims);
    const tg::Array<T> share = kept / lengths;
    return tg::einsum("bt,btd->bd", tg::Tensor<T>(share), x);
  }

  static tg::Tensor<T> loss(const tg::Tensor<T>& logits) {
    return tg::cross_entropy(logits, drawn_ids({kBatch}, 0, 3, 101));
  }
};

template <class T> struct LanguageModel {
  tg::IntArray ids;  // (B, T)
  tg::Embedding<T> embedding;
  tg::MultiHeadAttention<T> attention;
  tg::Linear<T> head;
  TAPEGRAD_FIELDS(embedding, attention, head)

  LanguageModel(std::size_t dim, std::size_t heads, const tg::IntArray& texts)
      : ids(texts), embedding(6, dim), attention(dim, heads), head(dim, 6) {}

  tg::Tensor<T> operator()() const {
    const Mask mask = Mask::causal() & Mask::key_padding(tg::padding_mask(ids, kPadding));
    return head(attention(embedding(ids), mask));
  }

  tg::Tensor<T> loss(const tg::Tensor<T>& logits) const {
    return tg::cross_entropy(logits, next(ids), {.ignore_index = kPadding});
  }
};

template <class T> struct CrossAttention {
  tg::Embedding<T> queries{6, 3}, keys{6, 5}, values{6, 2};
  tg::MultiHeadAttention<T> attention{6, 2, {.query_dim = 3, .key_dim = 5, .value_dim = 2}};
  TAPEGRAD_FIELDS(queries, keys, values, attention)

  tg::Tensor<T> operator()() const {
    const tg::IntArray ids = unpadded_ids(), asking = xt::view(ids, xt::all(), xt::range(0, 4));
    return attention(queries(asking), keys(ids), values(next(ids)), Mask::valid_lens(lengths()));
  }

  static tg::Tensor<T> loss(const tg::Tensor<T>& y) { return tg::mse_loss(y, numbers<T>(draw(y.shape()), 102)); }
};

template <class T> struct Transformer {
  tg::Embedding<T> embedding{6, 4}, positions{kTime, 4};
  std::vector<tg::TransformerBlock<T>> blocks;
  tg::LayerNorm<T> norm{{4}};
  std::optional<tg::Linear<T>> head;
  TAPEGRAD_FIELDS(embedding, positions, blocks, norm, head)

  explicit Transformer(const tg::TransformerBlockOptions& options = {.feed_forward_width = 6}, bool tied = false)
      : blocks(2, tg::TransformerBlock<T>(4, 2, options)) {
    if (!tied) head.emplace(4, 6);
  }

  tg::Tensor<T> operator()() const {
    tg::Tensor<T> x = embedding(unpadded_ids()) + positions(xt::arange<std::int64_t>(kTime));  // (T, D) for each text
    for (const auto& block : blocks) x = block(x, Mask::causal());
    return head ? (*head)(norm(x)) : tg::linear(norm(x), embedding.weight);
  }

  static tg::Tensor<T> loss(const tg::Tensor<T>& logits) { return tg::cross_entropy(logits, next(unpadded_ids())); }
};

template <class T> struct Llama {
  tg::Embedding<T> embedding{6, 8};
  tg::TransformerBlock<T> block{8,
                                4,
                                {.feed_forward_width = 6,
                                 .activation = tg::Activation::swiglu,
                                 .bias = false,
                                 .normalization = tg::Normalization::rms,
                                 .norm_eps = 1e-3,
                                 .num_kv_heads = 2,
                                 .rotary_base = 100}};
  tg::RMSNorm<T> norm{8};
  tg::Linear<T> head{8, 6, {.bias = false}};
  TAPEGRAD_FIELDS(embedding, block, norm, head)

  tg::Tensor<T> operator()() const { return head(norm(block(embedding(unpadded_ids()), Mask::causal()))); }

  static tg::Tensor<T> loss(const tg::Tensor<T>& logits) { return tg::cross_entropy(logits, next(unpadded_ids())); }
};

template <class T> struct EncoderDecoder {
  tg::Embedding<T> source;
  tg::TransformerBlock<T> encoder;
  tg::Embedding<T> target{6, 4};
  tg::TransformerDecoderBlock<T> decoder;
  tg::Linear<T> head{4, 6};
  TAPEGRAD_FIELDS(source, encoder, target, decoder, head)

  explicit EncoderDecoder(const tg::TransformerBlockOptions& options, std::size_t memory_width)
      : source(6, memory_width), encoder(memory_width, 2, options), decoder(4, 2, options, memory_width) {}

  tg::Tensor<T> operator()() const {
    const tg::Tensor<T> memory = encoder(source(unpadded_ids()), Mask::causal());
    return head(decoder(target(first_four(unpadded_ids())), memory, Mask::causal(), Mask::valid_lens(lengths())));
  }

  static tg::IntArray first_four(const tg::IntArray& ids) { return xt::view(ids, xt::all(), xt::range(0, 4)); }
  static tg::Tensor<T> loss(const tg::Tensor<T>& logits) {
    return tg::cross_entropy(logits, first_four(next(unpadded_ids())));
  }
};

template <class M> void fill(M& model) {
  std::uint64_t key = 0;
  for (const auto& parameter : tg::parameters(model))
    parameter->set_value(numbers<tg::detail::ScalarOf<M>>(draw(parameter->shape(), -0.7, 0.7), key++));
}

// The loss of each of 50 steps.
template <class M> tg::Array<double> curve_of(M& model, tg::Optimizer<tg::detail::ScalarOf<M>>& optimizer) {
  fill(model);
  tg::Array<double> curve(tg::Shape{50});
  for (double& value : curve) {
    tg::Tape tape;
    optimizer.zero_grad();
    const auto loss = model.loss(model());
    loss.backward();
    optimizer.step();
    value = loss.item();
  }
  return curve;
}

template <class M> tg::Array<double> losses(M model, const tg::SGDOptions& options) {
  tg::SGD<tg::detail::ScalarOf<M>> optimizer(tg::parameters(model), options);
  return curve_of(model, optimizer);
}

// Trains a transformer with weight decay on matrices but not on biases and norms.
template <template <class> class Adam, class T> tg::Array<double> losses_in_two_groups() {
  Transformer<T> model;
  const auto is_matrix = [](std::string_view, const auto& parameter) { return parameter.dimension() >= 2; };
  const auto is_other = [](std::string_view, const auto& parameter) { return parameter.dimension() < 2; };
  typename Adam<T>::Options options{.lr = 0.01, .betas = {0.8, 0.99}, .eps = 1e-6, .weight_decay = 0.1};
  Adam<T> optimizer(tg::parameters(model, is_matrix), options);
  options.lr = 0.02, options.weight_decay = 0;
  optimizer.add_group(tg::parameters(model, is_other), options);
  return curve_of(model, optimizer);
}

double largest(const tg::Array<double>& x) { return xt::amax(xt::abs(x))(); }

// Compares every gradient, relative to the largest of its parameter. If that is 0 up to rounding, as for key biases,
// which cancel in the softmax, relative to 1/10000 of the model's largest.
template <class M> void check_gradients(M& model, const nlohmann::json& expected) {
  double largest_of_all = 0;
  const auto named = tg::named_parameters(model);
  for (const auto& [name, parameter] : named) largest_of_all = std::max(largest_of_all, largest(parameter->grad()));
  CHECK(named.size() == expected.size());
  for (const auto& entry : named) {  // CAPTURE's lambdas cannot use structured bindings
    CAPTURE(entry.first);
    const tg::Array<double>& actual = entry.second->grad();
    const tg::Array<double> gradient = array_of(expected.at(entry.first), actual.shape());
    const double scale = std::max(largest(gradient), 1e-4 * largest_of_all);
    check_close(actual / scale, gradient / scale, 1e-11);
  }
}

// Compares the losses of the first kSteps steps; some models amplify rounding later.
template <template <class> class Model, std::size_t kSteps = 50, class... Args>
void check_model(const char* name, const Args&... args) {
  const nlohmann::json& expected = fixtures().at(name);
  Model<double> model(args...);
  fill(model);
  tg::Tape tape;
  const tg::Tensor<double> output = model();
  model.loss(output).backward();
  check_close(output.value(), array_of(expected.at("output"), output.shape()), 1e-11);
  check_gradients(model, expected.at("gradients"));

  const tg::IntArray steps = tg::arange(kSteps);
  const tg::Array<double> curve = tg::rows(array_of(expected.at("losses"), {50}), steps);
  check_close(tg::rows(losses(model, {.lr = 0.1}), steps), curve, 1e-11);
  check_close(tg::rows(losses(Model<float>(args...), {.lr = 0.1}), steps), curve, 1e-4);
}

}  // namespace

TEST_CASE("A classifier matches PyTorch with every mask") {
  const auto check = [](const char* name, std::size_t heads, const tg::IntArray& ids, const Mask& mask) {
    CAPTURE(name);
    check_model<Classifier>(name, heads, ids, mask);
  };
  check("classifier", 1, unpadded_ids(), Mask::none());
  check("classifier, key padding", 2, padded_ids(), Mask::key_padding(tg::padding_mask(padded_ids(), kPadding)));
  check("classifier, valid lengths", 2, unpadded_ids(), Mask::valid_lens(lengths()));
  check("classifier, valid lengths of every query", 2, unpadded_ids(), Mask::valid_lens(lengths_of_queries()));
}

TEST_CASE("A language model matches PyTorch") {
  SUBCASE("one head") { check_model<LanguageModel>("language model, one head", 8, 1, unpadded_ids()); }
  SUBCASE("eight heads") { check_model<LanguageModel>("language model, eight heads", 16, 8, unpadded_ids()); }
  SUBCASE("padded texts") { check_model<LanguageModel>("language model, padding", 8, 2, padded_ids()); }
}

TEST_CASE("Cross-attention with queries, keys and values of different widths matches PyTorch") {
  check_model<CrossAttention>("cross attention");
}

TEST_CASE("Transformer blocks match PyTorch") {
  const auto check = [](const char* name, tg::TransformerBlockOptions options, bool tied = false) {
    CAPTURE(name);
    options.feed_forward_width = 6;
    check_model<Transformer>(name, options, tied);
  };
  check("transformer", {});
  check("transformer, gelu by tanh", {.activation = tg::Activation::gelu_tanh});
  check("transformer, norms last", {.activation = tg::Activation::relu, .norm = tg::NormPlacement::last});
  check("transformer, without biases, tied", {.activation = tg::Activation::silu, .bias = false}, true);
  check("transformer, without norms", {.norm = tg::NormPlacement::none});
  check("transformer, one head of keys", {.num_kv_heads = 1});
  check("transformer, rotary, rms norms last, gated", {.activation = tg::Activation::swiglu,
                                                       .norm = tg::NormPlacement::last,
                                                       .normalization = tg::Normalization::rms,
                                                       .rotary_base = 10000});
}

TEST_CASE("A Llama matches PyTorch") { check_model<Llama>("llama"); }

TEST_CASE("An encoder-decoder matches PyTorch") {
  const auto check = [](const char* name, tg::TransformerBlockOptions options, std::size_t memory_width = 4) {
    CAPTURE(name);
    options.feed_forward_width = 6;
    check_model<EncoderDecoder, 30>(name, options, memory_width);
  };
  check("encoder-decoder", {});
  check("encoder-decoder, norms last", {.activation = tg::Activation::relu, .norm = tg::NormPlacement::last}, 6);
  check("encoder-decoder, without norms and biases",
        {.activation = tg::Activation::silu, .bias = false, .norm = tg::NormPlacement::none});
  check("encoder-decoder, rotary, rms norms, gated, one head of keys",
        {.activation = tg::Activation::swiglu,
         .bias = false,
         .normalization = tg::Normalization::rms,
         .num_kv_heads = 1,
         .rotary_base = 100},
        8);
}

TEST_CASE("Training a classifier with each of SGD's options matches PyTorch") {
  const std::vector<std::pair<std::string, tg::SGDOptions>> all{
      {"learning rate", {.lr = 0.1}},
      {"weight decay", {.lr = 0.1, .weight_decay = 0.05}},
      {"momentum", {.lr = 0.1, .momentum = 0.9}},
      {"dampening", {.lr = 0.1, .momentum = 0.9, .dampening = 0.4}},
      {"nesterov", {.lr = 0.1, .momentum = 0.9, .nesterov = true}},
      {"momentum, dampening and weight decay", {.lr = 0.1, .momentum = 0.9, .dampening = 0.4, .weight_decay = 0.05}},
      {"nesterov and weight decay", {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05, .nesterov = true}},
  };
  CHECK(fixtures().at("SGD").size() == all.size());
  for (const auto& optimizer : all) {
    CAPTURE(optimizer.first);
    const tg::SGDOptions& options = optimizer.second;
    const tg::Array<double> curve = array_of(fixtures().at("SGD").at(optimizer.first), {50});
    check_close(losses(Classifier<double>(1, unpadded_ids(), Mask::none()), options), curve, 1e-11);
    check_close(losses(Classifier<float>(1, unpadded_ids(), Mask::none()), options), curve, 1e-4);
  }
}

TEST_CASE("Training a transformer with Adam and AdamW in two groups matches PyTorch") {
  const tg::Array<double> adam = array_of(fixtures().at("Adam"), {50}), adamw = array_of(fixtures().at("AdamW"), {50});
  check_close(losses_in_two_groups<tg::Adam, double>(), adam, 1e-8);
  check_close(losses_in_two_groups<tg::AdamW, double>(), adamw, 1e-8);
  // Adam divides by the gradients' own size, which amplifies float rounding, differently for each compiler.
  check_close(losses_in_two_groups<tg::Adam, float>(), adam, 1e-2);
  check_close(losses_in_two_groups<tg::AdamW, float>(), adamw, 1e-2);
}
