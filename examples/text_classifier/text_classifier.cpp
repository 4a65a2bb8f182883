/// Learns what a text is from labelled examples: by default, which of six languages a word is written in.
/// `text_classifier --help` tells how to ask for something else.

#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>
#include <xtensor/xview.hpp>

#include <algorithm>
#include <iostream>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../common/batches.hpp"
#include "../common/explain.hpp"
#include "../common/program.hpp"
#include "../common/settings.hpp"
#include "../common/training.hpp"
#include "data.hpp"
#include "options.hpp"
#include "report.hpp"

namespace tg = tapegrad;
using Tensor = tg::Tensor<float>;
using examples::Ids, examples::Vocabulary;

/// The mean over the real tokens. x: (B, T, D), keep: (B, T), true for real tokens, false for padding -> (B, D)
Tensor mean_of_kept(const Tensor& x, const tg::BoolArray& keep) {
  const tg::Array<float> kept = xt::cast<float>(keep);
  const tg::Array<float> lengths = xt::sum(kept, {1}, xt::keep_dims);  // (B, 1); named, see engine/array/xtensor.md
  const tg::Array<float> share = kept / lengths;                       // (B, T), 1 over the length or 0
  return tg::einsum("bt,btd->bd", Tensor(share), x);
}

/// Vectors for the ids 0, ..., rows - 1.
tg::Embedding<> make_table(std::size_t rows, const ModelOptions& options) {
  tg::Embedding<> table(rows, options.width);
  table.weight.set_value(table.weight.value() * static_cast<float>(options.init_std));
  return table;
}

/// The classifier: every token looks at every other, and their mean says what the text is.
struct Model {
  tg::Embedding<> embedding;
  std::optional<tg::Embedding<>> positions;  // a learned vector for each place in the text, when asked for
  tg::Dropout dropout;
  tg::MultiHeadAttention<> attention;
  tg::Linear<> head;
  TAPEGRAD_FIELDS(embedding, positions, dropout, attention, head)

  Model(std::size_t vocabulary, std::size_t classes, const ModelOptions& options)
      : embedding(make_table(vocabulary, options)),
        dropout(options.dropout),
        attention(options.width, options.heads),
        head(options.width, classes) {
    if (options.positions) positions = make_table(options.max_length, options);
  }

  /// ids: (B, T), keep: (B, T), true for real tokens, false for padding -> logits: (B, classes)
  Tensor operator()(const tg::IntArray& ids, const tg::BoolArray& keep) const {
    return decide(attention(vectors(ids), tg::AttentionMask::key_padding(keep)), keep);
  }

  /// The same with the weights of the attention. -> (B, classes), (B, heads, T, T)
  std::pair<Tensor, Tensor> with_weights(const tg::IntArray& ids, const tg::BoolArray& keep) const {
    const Tensor x = vectors(ids);
    const auto [y, weights] = attention.with_weights(x, x, x, tg::AttentionMask::key_padding(keep));
    return {decide(y, keep), weights};
  }

  /// (B, T) -> (B, T, D)
  Tensor vectors(const tg::IntArray& ids) const {
    Tensor x = embedding(ids);
    if (positions) x = x + (*positions)(xt::arange<std::int64_t>(ids.shape()[1]));  // (T, D) goes to each text
    return dropout(x);
  }

  /// (B, T, D), (B, T) -> (B, classes)
  Tensor decide(const Tensor& x, const tg::BoolArray& keep) const { return head(mean_of_kept(x, keep)); }
};

/// Texts as the model takes them.
struct Sequences {
  std::vector<Ids> ids;
  std::vector<std::int64_t> labels;
};

/// Trains the model until it has taken all steps or the user stops it; says whether it has taken all.
bool train(Model& model, const Sequences& data, const examples::TrainingOptions& options) {
  examples::Batches batches(data.ids, options.batch_size);
  tg::train(model);
  return examples::train(tg::parameters(model), options, [&] {
    const auto chosen = batches.next();
    const auto [ids, keep, tokens] = examples::pad(data.ids, chosen);  // (B, T)
    tg::IntArray labels(tg::Shape{chosen.size()});                     // (B)
    for (std::size_t i = 0; i < chosen.size(); ++i) labels(i) = data.labels[chosen[i]];
    return examples::StepLoss{tg::cross_entropy(model(ids, keep), labels), tokens};
  });
}

/// How likely each label is for each text. -> (N, classes)
tg::Array<float> predict(Model& model, const std::vector<Ids>& texts) {
  std::vector<std::size_t> order(texts.size());  // by length, so that little of a batch is padding
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return texts[a].size() < texts[b].size(); });

  tg::eval(model);
  tg::Array<float> probabilities(tg::Shape{texts.size(), model.head.weight.shape()[0]});
  constexpr std::size_t batch_size = 128;
  for (std::size_t start = 0; start < order.size(); start += batch_size) {
    const auto chosen = std::span(order).subspan(start, std::min(batch_size, order.size() - start));
    const auto [ids, keep, tokens] = examples::pad(texts, chosen);
    const Tensor rows = tg::softmax(model(ids, keep), -1);  // (batch, classes)
    for (std::size_t i = 0; i < chosen.size(); ++i) xt::view(probabilities, chosen[i]) = xt::view(rows.value(), i);
  }
  return probabilities;
}

/// A model with what it takes to use it on texts.
struct Classifier {
  examples::Tokenizer tokenizer;
  std::vector<std::string> labels;
  ModelOptions options;
  Model model{tokenizer.vocabulary.size(), labels.size(), options};

  Sequences encode(const std::vector<Example>& data) const {
    Sequences sequences;
    for (const Example& example : data) {
      sequences.ids.push_back(tokenizer(example.text));
      sequences.labels.push_back(label_id(example, labels));
    }
    return sequences;
  }
};

Classifier make_classifier(const std::vector<Example>& data, const Options& options) {
  std::vector<examples::Text> texts;
  for (const Example& example : data) texts.push_back(example.text);
  return {examples::make_tokenizer(texts, options.unit, options.model.max_length), labels_of(data), options.model};
}

const std::string program = "text_classifier";

void save(const Classifier& classifier, const std::string& path) {
  const auto& [width, heads, positions, init_std, dropout, max_length] = classifier.options;
  const nlohmann::json settings{{"characters", classifier.tokenizer.unit == examples::Unit::characters},
                                {"vocabulary", classifier.tokenizer.vocabulary.tokens()},
                                {"labels", classifier.labels},
                                {"width", width},
                                {"heads", heads},
                                {"positions", positions},
                                {"init_std", init_std},
                                {"dropout", dropout},
                                {"max_length", max_length}};
  tg::save(classifier.model, path, examples::as_metadata(program, settings));
  std::cout << "saved in " << path << '\n';
}

Classifier load(const std::string& path) {
  auto classifier = examples::make_from_settings(path, program, [](const nlohmann::json& settings) {
    const ModelOptions options{settings.at("width"),    settings.at("heads"),   settings.at("positions"),
                               settings.at("init_std"), settings.at("dropout"), settings.at("max_length")};
    const auto unit = settings.at("characters") ? examples::Unit::characters : examples::Unit::words;
    const examples::Tokenizer tokenizer{unit, options.max_length, Vocabulary(settings.at("vocabulary"))};
    return Classifier{tokenizer, settings.at("labels"), options};
  });
  tg::load(classifier.model, path);
  return classifier;
}

/// Prints how well the classifier does on the test data, of which `sequences` are the ids.
void test(Classifier& classifier, const std::vector<Example>& data, const Sequences& sequences) {
  const tg::Array<float> probabilities = predict(classifier.model, sequences.ids);
  std::cout << '\n';
  print_confusion(std::cout, confusion(probabilities, sequences.labels), classifier.labels);

  std::cout << "\nthe first of each in the test: its label, then what the model takes it for\n";
  std::vector<std::string> texts, truth;
  std::vector<std::size_t> rows;
  for (const std::string& label : classifier.labels) {
    const auto first = std::find_if(data.begin(), data.end(), [&](const Example& e) { return e.label == label; });
    if (first == data.end()) continue;
    rows.push_back(static_cast<std::size_t>(first - data.begin()));
    texts.push_back(examples::encode(first->text));
    truth.push_back(label);
  }
  print_probabilities(std::cout, texts, truth, xt::view(probabilities, xt::keep(rows)), classifier.labels);
}

void classify(Classifier& classifier, const std::vector<std::string>& texts) {
  std::vector<Ids> ids;
  for (const std::string& text : texts) ids.push_back(classifier.tokenizer(examples::to_lower(examples::decode(text))));
  std::cout << "\nyours: what the model takes them for\n";
  print_probabilities(std::cout, texts, {}, predict(classifier.model, ids), classifier.labels);
}

/// Shows how the model comes to what it takes the text for: the attention, and how the logarithm of the likeliest
/// label's probability grows with each weight.
void explain(Classifier& classifier, const examples::ExplainOptions& options) {
  const examples::Text text = examples::to_lower(examples::decode(options.text));
  const std::vector<Ids> sequences{classifier.tokenizer(text)};
  const std::size_t chosen[] = {0};
  const auto [ids, keep, tokens] = examples::pad(sequences, chosen);

  tg::eval(classifier.model);
  tg::Tape tape;
  auto [logits, weights] = classifier.model.with_weights(ids, keep);  // (1, classes), (1, heads, T, T)
  weights.retain_grad();
  const tg::IntArray likeliest = tg::argmax(logits.value(), 1);
  (-tg::cross_entropy(logits, likeliest)).backward();

  std::cout << "\nexplained: what the model takes it for, and where its attention is to be seen\n";
  print_probabilities(std::cout, {options.text}, {}, tg::softmax(logits.detach(), -1).value(), classifier.labels);
  const std::vector<std::string> shown = classifier.tokenizer.shown(text);
  const std::string label = classifier.labels[static_cast<std::size_t>(likeliest(0))];
  examples::write_attention(tg::attention_map(weights, 0, shown, shown), options.name,
                            options.text + ", taken for " + label);
}

int learn_texts(const Options& options) {
  if (!options.save.empty()) examples::require_writable(options.save);
  examples::require_attention_writable(options.explain);
  Data data;
  if (options.needs_data()) data = read_data(options);
  Classifier classifier = options.load.empty() ? make_classifier(data.train, options) : load(options.load);
  const Sequences tests = classifier.encode(data.test);
  tg::print(std::cout, classifier.model);

  bool finished = true;
  if (options.load.empty()) {
    finished = train(classifier.model, classifier.encode(data.train), options.training);
    if (!finished) std::cout << "stopped early, as you asked; what follows is the model so far\n";
    if (!options.save.empty()) save(classifier, options.save);
  }
  if (!tests.ids.empty()) test(classifier, data.test, tests);
  if (!options.classify.empty()) classify(classifier, options.classify);
  if (!options.explain.text.empty()) explain(classifier, options.explain);
  return finished ? 0 : examples::stopped_status;
}

/// The tutorial's run: learns a batch of random sequences, with random labels, by heart.
int learn_random_sequences(const Options& options) {
  constexpr std::size_t vocabulary = 26, classes = 3;
  Sequences data;
  for (std::size_t i = 0; i < options.training.batch_size; ++i) {
    const auto ids = tg::uniform<double>({options.model.max_length}, 0, vocabulary);
    data.ids.emplace_back(ids.begin(), ids.end());
    data.labels.push_back(static_cast<std::int64_t>(tg::uniform<double>({1}, 0, classes)(0)));
  }
  Model model(vocabulary, classes, options.model);
  tg::print(std::cout, model);
  return train(model, data, options.training) ? 0 : examples::stopped_status;
}

int main(int argc, char** argv) {
  CLI::App app;
  Options options;
  add_options(app, options);
  return examples::run_program(app, argc, argv, [&] {
    tg::manual_seed(options.seed);
    return options.source == Source::random ? learn_random_sequences(options) : learn_texts(options);
  });
}
