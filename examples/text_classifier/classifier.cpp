#include "classifier.hpp"

#include <algorithm>
#include <iostream>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "../common/printable.hpp"
#include "../common/settings.hpp"

namespace tg = tapegrad;
using examples::Ids;

namespace {

/// x: (N, C) -> (B, C)
tg::Array<float> rows_of(const tg::Array<float>& x, std::span<const std::size_t> chosen) {
  tg::IntArray order(tg::Shape{chosen.size()});
  std::ranges::copy(chosen, order.begin());
  return tg::rows(x, order);
}

}  // namespace

tg::IntArray Sequences::labels_of(std::span<const std::size_t> chosen) const {
  tg::IntArray chosen_labels(tg::Shape{chosen.size()});
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen_labels(i) = labels[chosen[i]];
  return chosen_labels;
}

tg::Array<float> Sequences::prior_of(std::span<const std::size_t> chosen) const { return rows_of(prior, chosen); }

void in_batches(const std::vector<Ids>& texts,
                const std::function<void(std::span<const std::size_t>, const examples::Padded&)>& use) {
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return texts[a].size() < texts[b].size(); });
  constexpr std::size_t batch_size = 128;
  for (std::size_t start = 0; start < order.size(); start += batch_size) {
    const auto chosen = std::span(order).subspan(start, std::min(batch_size, order.size() - start));
    use(chosen, examples::pad(texts, chosen));
  }
}

Sequences Classifier::encode(const std::vector<Example>& data) const {
  Sequences sequences{{}, label_ids(data, labels), {}};
  for (const Example& example : data) sequences.ids.push_back(tokenizer(example.text));
  sequences.prior = bayes.scores(sequences.ids);
  return sequences;
}

std::optional<double> Classifier::baseline(const Sequences& sequences) const {
  if (bayes.empty()) return {};
  return accuracy(rank(sequences.prior), sequences.labels);
}

std::vector<Ranking> Classifier::predict(const std::vector<Ids>& texts) {
  tg::eval(model);
  std::vector<Ranking> predictions(texts.size());
  const tg::Array<float> prior = bayes.scores(texts);
  in_batches(texts, [&](std::span<const std::size_t> chosen, const examples::Padded& batch) {
    const auto probabilities = tg::softmax(model(batch.ids, batch.keep, rows_of(prior, chosen)), -1);  // (B, classes)
    const std::vector<Ranking> rankings = rank(probabilities.value());
    for (std::size_t i = 0; i < chosen.size(); ++i) predictions[chosen[i]] = rankings[i];
  });
  return predictions;
}

Classifier make_classifier(const std::vector<Example>& data, const std::vector<std::string>& labels,
                           const Options& options) {
  std::vector<examples::Text> texts;
  for (const Example& example : data) texts.push_back(example.text);
  const auto tokenizer =
      examples::make_tokenizer(texts, options.unit, options.model.max_length, options.model.min_count);
  std::vector<Ids> ids;
  for (const examples::Text& text : texts) ids.push_back(tokenizer(text));
  const IdPairs pairs = options.model.pairs ? frequent_pairs(ids) : IdPairs();
  return {tokenizer, pairs, labels, options.model, NaiveBayes(ids, label_ids(data, labels), labels.size())};
}

namespace {

const std::string program = "text_classifier";

/// The token pairs in a file's settings; none in files from versions without pairs. Throws for more than `rows`.
IdPairs pairs_at(const nlohmann::json& settings, std::size_t rows) {
  const IdPairs pairs = settings.value("pairs", IdPairs());
  if (pairs.size() > rows)
    throw std::invalid_argument("pairs: expected at most " + std::to_string(rows) +
                                ", the limit from the file's length, got " + std::to_string(pairs.size()));
  return pairs;
}

/// The counts in a file's settings; none in files from versions without naive Bayes.
NaiveBayes bayes_at(const nlohmann::json& settings, std::size_t classes) {
  if (!settings.contains("naive_bayes")) return {{}, {}, classes};
  return {settings.at("naive_bayes"), classes};
}

}  // namespace

void save(const Classifier& classifier, const std::string& path) {
  const ClassifierOptions& options = classifier.options;
  const nlohmann::json settings{{"characters", classifier.tokenizer.unit == examples::Unit::characters},
                                {"vocabulary", classifier.tokenizer.vocabulary.tokens()},
                                {"labels", classifier.labels},
                                {"width", options.width},
                                {"heads", options.heads},
                                {"positions", options.positions},
                                {"pairs", classifier.pairs},
                                {"prior", options.prior},
                                {"naive_bayes", classifier.bayes.settings()},
                                {"residual", options.residual},
                                {"init_std", options.init_std},
                                {"token_dropout", options.token_dropout},
                                {"dropout", options.dropout},
                                {"max_length", options.max_length}};
  tg::save(classifier.model, path, examples::as_metadata(program, settings));
  std::cout << "saved in " << examples::printable(path) << '\n';
}

Classifier load_classifier(const std::string& path) {
  auto classifier =
      examples::make_from_settings(path, program, [](const nlohmann::json& settings, std::size_t numbers) {
        using examples::names_at, examples::size_at;
        const std::size_t width = size_at(settings, "width", examples::largest_width(numbers)), rows = numbers / width;
        const bool positions = settings.at("positions");
        const std::size_t longest = positions ? rows : std::numeric_limits<std::size_t>::max();
        const IdPairs pairs = pairs_at(settings, rows);
        const ClassifierOptions options{.width = width,
                                        .heads = size_at(settings, "heads", width),
                                        .positions = positions,
                                        .pairs = !pairs.empty(),
                                        .prior = settings.value("prior", false),
                                        .residual = settings.value("residual", false),
                                        .init_std = settings.at("init_std"),
                                        .token_dropout = settings.value("token_dropout", 0.0),
                                        .dropout = settings.at("dropout"),
                                        .max_length = size_at(settings, "max_length", longest)};
        const auto unit = settings.at("characters") ? examples::Unit::characters : examples::Unit::words;
        const examples::Tokenizer tokenizer{unit, options.max_length,
                                            examples::Vocabulary(names_at(settings, "vocabulary", rows))};
        const std::vector<std::string> labels = names_at(settings, "labels", rows);
        return Classifier{tokenizer, pairs, labels, options, bayes_at(settings, labels.size())};
      });
  tg::load(classifier.model, path);
  return classifier;
}
