/// Trains a text classifier on labeled examples. By default it detects which of six languages a word belongs to;
/// `text_classifier --help` lists the options.

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../common/batches.hpp"
#include "../common/explain.hpp"
#include "../common/printable.hpp"
#include "../common/program.hpp"
#include "../common/progress.hpp"
#include "../common/ranks.hpp"
#include "../common/step_page.hpp"
#include "../common/word_lists.hpp"
#include "classifier.hpp"
#include "data.hpp"
#include "folds.hpp"
#include "options.hpp"
#include "report.hpp"
#include "train.hpp"

namespace tg = tapegrad;
using examples::Ids;

/// Prints the classifier's results on the test data.
void test(Classifier& classifier, const std::vector<Example>& data) {
  const Sequences sequences = classifier.encode(data);
  const std::vector<Ranking> predictions = classifier.predict(sequences.ids);
  const std::vector<std::string>& labels = classifier.labels;
  std::cout << '\n';
  print_confusion(std::cout, predictions, sequences.labels, labels, classifier.baseline(sequences));

  std::cout << "\nthe first test text of each label, with predictions:\n";
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
  std::cout << "\nyour words:\n";
  print_probabilities(std::cout, texts, {}, classifier.predict(ids), classifier.labels);
}

/// Writes the attention weights on a text and the gradients of the likeliest label's log probability with respect to
/// them.
void explain(Classifier& classifier, const examples::ExplainOptions& options) {
  const examples::Text text = examples::to_lower(examples::decode(options.text));
  const std::vector<Ids> sequences{classifier.tokenizer(text)};
  const std::size_t chosen[] = {0};
  const auto [ids, keep, tokens] = examples::pad(sequences, chosen);

  tg::eval(classifier.model);
  tg::Tape tape;
  auto [logits, weights] =
      classifier.model.with_weights(ids, keep, classifier.bayes.scores(sequences));  // (1, classes), (1, heads, T, T)
  weights.retain_grad();
  const tg::IntArray likeliest = tg::argmax(logits.value(), 1);
  (-tg::cross_entropy(logits, likeliest)).backward();

  std::cout << "\nattention on the text, with the predicted labels:\n";
  print_probabilities(std::cout, {options.text}, {}, rank(tg::softmax(logits.detach(), -1).value()), classifier.labels);
  const std::vector<std::string> shown = classifier.tokenizer.shown(text);
  const std::string label = classifier.labels[static_cast<std::size_t>(likeliest(0))];
  examples::write_attention(tg::attention_map(weights, 0, shown, shown), options.name,
                            options.text + ", predicted: " + label);
}

/// Writes the page of a step on the user's text with its predicted label, or on the first test text with its true
/// label.
void show_step(Classifier& classifier, const examples::StepPageOptions& options, const std::vector<Example>& tests) {
  Example example = options.text ? Example{"", examples::to_lower(examples::decode(*options.text)), ""} : tests.front();
  if (options.text) {
    const Ranking ranking = classifier.predict({classifier.tokenizer(example.text)}).front();
    example.label = classifier.labels[static_cast<std::size_t>(ranking.front().label)];
  }
  const Sequences sequences = classifier.encode({example});
  const std::size_t chosen[] = {0};
  const auto loss_of = [&](const Model& model) {
    const auto [ids, keep, count] = examples::pad(sequences.ids, chosen);
    auto logits = model(ids, keep, sequences.prior);  // (1, labels)
    logits.set_name("logits");
    return tg::cross_entropy(logits, sequences.labels_of(chosen));
  };

  const std::string text = examples::in_quotes(examples::encode(example.text)),
                    of_label = options.text ? " with its predicted label, " : ", the first test text, with its label, ";
  const tg::PageAxis batch{"batch"}, width{}, label{"label", classifier.labels},
      token{"token", examples::visible(classifier.tokenizer.shown(example.text))},
      vocabulary{"vocabulary", examples::visible(classifier.tokenizer.vocabulary.shown())};
  examples::write_step(options.file, classifier.model, loss_of,
                       {text + of_label + examples::printable(example.label),
                        {{"", {batch, token, width}},
                         {"positions", {token, width}},
                         {"embedding.weight", {vocabulary, width}},
                         {"head.weight", {label, width}},
                         {"head.bias", {label}},
                         {"logits", {batch, label}}}});
}

/// The program's input files.
std::vector<std::string> inputs(const Options& options) {
  std::vector<std::string> files{options.data, options.train, options.test, options.load};
  if (options.source == DataKind::word_lists && options.needs_data())
    for (const std::string& language : options.languages) files.push_back(examples::word_list_path(language));
  return files;
}

/// Trains or loads a classifier. Throws std::runtime_error before training if `tests` has unknown labels.
Trained get_classifier(const Options& options, std::vector<Example> texts, const std::vector<Example>& tests) {
  if (options.load.empty()) {
    const std::vector<std::string> labels = labels_of(texts);
    label_ids(tests, labels);
    return learn(std::move(texts), labels, options, [&](const Classifier& classifier) {
      if (!options.save.empty()) save(classifier, options.save);
    });
  }
  Classifier classifier = load_classifier(options.load);
  label_ids(tests, classifier.labels);
  tg::print(std::cout, classifier.model);
  return {std::move(classifier), 0};
}

int use_texts(const Options& options) {
  examples::prepare_outputs({.save = options.save}, options.page, options.explain, {}, inputs(options));
  Data data;
  if (options.needs_data()) data = read_data(options);
  if (options.folds > 0) return cross_validate(data.train, options);

  auto [classifier, status] = get_classifier(options, std::move(data.train), data.test);
  if (!examples::is_first_rank()) return status;
  if (!data.test.empty()) test(classifier, data.test);
  if (!options.classify.empty()) classify(classifier, options.classify);
  if (!options.page.file.empty()) show_step(classifier, options.page, data.test);
  if (options.explain.wanted) explain(classifier, options.explain);
  return status;
}

/// The tutorial's run: memorizes a batch of random sequences with random labels.
int learn_random_sequences(const Options& options) {
  constexpr std::size_t vocabulary = 26, classes = 3;
  Sequences data;
  for (std::size_t i = 0; i < options.training.batch_size; ++i) {
    const auto ids = tg::uniform<double>({options.model.max_length}, 0, vocabulary);
    data.ids.emplace_back(ids.begin(), ids.end());
    data.labels.push_back(static_cast<std::int64_t>(tg::uniform<double>({1}, 0, classes)(0)));
  }
  data.prior = tg::Array<float>(tg::Shape{data.ids.size(), classes}, 0);
  Model model(vocabulary, {}, classes, options.model);
  tg::print(std::cout, model);
  return train(model, data, {}, options.training);
}

int main(int argc, char** argv) {
  CLI::App app;
  Options options;
  add_options(app, options);
  return examples::run_program(app, argc, argv, [&] {
    tg::manual_seed(options.seed);
    if (!examples::is_first_rank()) options.save.clear(), options.page.file.clear();  // only the first writes them
    return options.source == DataKind::random ? learn_random_sequences(options) : use_texts(options);
  });
}
