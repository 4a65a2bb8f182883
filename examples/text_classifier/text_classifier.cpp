/// Learns what a text is from labelled examples: by default, which of six languages a word is written in.
/// `text_classifier --help` tells how to ask for something else.

#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../common/batches.hpp"
#include "../common/explain.hpp"
#include "../common/printable.hpp"
#include "../common/program.hpp"
#include "../common/progress.hpp"
#include "../common/settings.hpp"
#include "../common/training.hpp"
#include "../common/word_lists.hpp"
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

/// Trains the model until it has taken all steps or the user stops it, then calls `keep`; gives back the exit status.
int train(
    Model& model, const Sequences& data, const examples::TrainingOptions& options,
    const std::function<void()>& keep = [] {}) {
  examples::Batches batches(data.ids, options.batch_size);
  const auto parameters = tg::parameters(model);
  examples::TrainingState state(parameters, options);
  tg::train(model);
  const auto next_loss = [&] {
    const auto chosen = batches.next(state.place);
    const auto [ids, real, tokens] = examples::pad(data.ids, chosen);  // (B, T)
    tg::IntArray labels(tg::Shape{chosen.size()});                     // (B)
    for (std::size_t i = 0; i < chosen.size(); ++i) labels(i) = data.labels[chosen[i]];
    return examples::StepLoss{tg::cross_entropy(model(ids, real), labels), tokens};
  };
  return examples::train(state, parameters, options, {.next_loss = next_loss, .keep = keep});
}

/// What the model takes each text for.
std::vector<Ranking> predict(Model& model, const std::vector<Ids>& texts) {
  std::vector<std::size_t> order(texts.size());  // by length, so that little of a batch is padding
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return texts[a].size() < texts[b].size(); });

  tg::eval(model);
  std::vector<Ranking> predictions(texts.size());
  constexpr std::size_t batch_size = 128;
  for (std::size_t start = 0; start < order.size(); start += batch_size) {
    const auto chosen = std::span(order).subspan(start, std::min(batch_size, order.size() - start));
    const auto [ids, keep, tokens] = examples::pad(texts, chosen);
    const Tensor probabilities = tg::softmax(model(ids, keep), -1);  // (batch, classes)
    const std::vector<Ranking> rankings = rank(probabilities.value());
    for (std::size_t i = 0; i < chosen.size(); ++i) predictions[chosen[i]] = rankings[i];
  }
  return predictions;
}

/// A model with what it takes to use it on texts.
struct Classifier {
  examples::Tokenizer tokenizer;
  std::vector<std::string> labels;
  ModelOptions options;
  Model model{tokenizer.vocabulary.size(), labels.size(), options};

  Sequences encode(const std::vector<Example>& data) const {
    Sequences sequences{{}, label_ids(data, labels)};
    for (const Example& example : data) sequences.ids.push_back(tokenizer(example.text));
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
  std::cout << "saved in " << examples::printable(path) << '\n';
}

Classifier load(const std::string& path) {
  auto classifier =
      examples::make_from_settings(path, program, [](const nlohmann::json& settings, std::size_t numbers) {
        using examples::names_at, examples::size_at;
        const std::size_t width = size_at(settings, "width", examples::largest_width(numbers)), rows = numbers / width;
        const bool positions = settings.at("positions");
        const std::size_t longest = positions ? rows : std::numeric_limits<std::size_t>::max();
        const ModelOptions options{.width = width,
                                   .heads = size_at(settings, "heads", width),
                                   .positions = positions,
                                   .init_std = settings.at("init_std"),
                                   .dropout = settings.at("dropout"),
                                   .max_length = size_at(settings, "max_length", longest)};
        const auto unit = settings.at("characters") ? examples::Unit::characters : examples::Unit::words;
        const examples::Tokenizer tokenizer{unit, options.max_length,
                                            Vocabulary(names_at(settings, "vocabulary", rows))};
        return Classifier{tokenizer, names_at(settings, "labels", rows), options};
      });
  tg::load(classifier.model, path);
  return classifier;
}

/// Prints how well the classifier does on the test data, of which `sequences` are the ids.
void test(Classifier& classifier, const std::vector<Example>& data, const Sequences& sequences) {
  const std::vector<Ranking> predictions = predict(classifier.model, sequences.ids);
  const std::vector<std::string>& labels = classifier.labels;
  std::cout << '\n';
  print_confusion(std::cout, predictions, sequences.labels, labels);

  std::cout << "\nthe first of each in the test: its label, then what the model takes it for\n";
  std::vector<std::string> texts, truth;
  std::vector<Ranking> firsts;
  for (const std::string& label : std::span(labels).first(std::min(many_labels, labels.size()))) {
    const auto first = std::find_if(data.begin(), data.end(), [&](const Example& e) { return e.label == label; });
    if (first == data.end()) continue;
    firsts.push_back(predictions[static_cast<std::size_t>(first - data.begin())]);
    texts.push_back(examples::encode(first->text));
    truth.push_back(label);
  }
  print_probabilities(std::cout, texts, truth, firsts, labels);
  if (labels.size() > many_labels)
    std::cout << "  ... and " << examples::with_commas(labels.size() - many_labels) << " more labels\n";
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
  print_probabilities(std::cout, {options.text}, {}, rank(tg::softmax(logits.detach(), -1).value()), classifier.labels);
  const std::vector<std::string> shown = classifier.tokenizer.shown(text);
  const std::string label = classifier.labels[static_cast<std::size_t>(likeliest(0))];
  examples::write_attention(tg::attention_map(weights, 0, shown, shown), options.name,
                            options.text + ", taken for " + label);
}

/// The files that the program reads.
std::vector<std::string> inputs(const Options& options) {
  std::vector<std::string> files{options.data, options.train, options.test, options.load};
  if (options.source == Source::word_lists && options.needs_data())
    for (const std::string& language : options.languages) files.push_back(examples::word_list_path(language));
  return files;
}

void check_files(const Options& options) {
  std::vector<std::string> outputs = examples::attention_files(options.explain);
  outputs.push_back(options.save);
  examples::check_outputs(outputs, inputs(options));
  if (!options.save.empty() || options.explain.wanted) examples::outlive_reader();
}

int learn_texts(const Options& options) {
  check_files(options);
  Data data;
  if (options.needs_data()) data = read_data(options);
  Classifier classifier = options.load.empty() ? make_classifier(data.train, options) : load(options.load);
  const Sequences tests = classifier.encode(data.test);
  tg::print(std::cout, classifier.model);

  int status = 0;
  if (options.load.empty())
    status = train(classifier.model, classifier.encode(data.train), options.training, [&] {
      if (!options.save.empty()) save(classifier, options.save);
    });
  if (!tests.ids.empty()) test(classifier, data.test, tests);
  if (!options.classify.empty()) classify(classifier, options.classify);
  if (options.explain.wanted) explain(classifier, options.explain);
  return status;
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
  return train(model, data, options.training);
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
