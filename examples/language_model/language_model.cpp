/// Learns which character comes next, and writes on by itself: by default, it invents English words.
/// `language_model --help` tells how to ask for something else.

#include <tapegrad/tapegrad.hpp>

#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

#include <cmath>
#include <functional>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <span>
#include <sstream>

#include "../common/batches.hpp"
#include "../common/explain.hpp"
#include "../common/printable.hpp"
#include "../common/program.hpp"
#include "../common/training.hpp"
#include "../common/word_lists.hpp"
#include "data.hpp"
#include "model.hpp"
#include "options.hpp"
#include "writer.hpp"

namespace tg = tapegrad;
using examples::Ids, examples::Vocabulary;

/// What goes into the model, and what it is to say: the ids one place further on.
struct Shifted {
  tg::IntArray ids, next;  // (B, T)
};

/// ids: (B, T + 1) -> both (B, T)
Shifted shift(const tg::IntArray& ids) {
  return {xt::view(ids, xt::all(), xt::range(xt::placeholders::_, -1)),
          xt::view(ids, xt::all(), xt::range(1, xt::placeholders::_))};
}

/// -log p of each id that follows, summed or averaged; padding does not count. logits: (B, T, vocabulary), next: (B, T)
tg::Tensor<float> loss_of(const tg::Tensor<float>& logits, const tg::IntArray& next, tg::Reduction reduction) {
  tg::CrossEntropyOptions<float> options;
  options.ignore_index = Vocabulary::padding;
  options.reduction = reduction;
  return tg::cross_entropy(logits, next, options);
}

tg::Tensor<float> loss_of(const LanguageModel<>& model, const Shifted& batch, tg::Reduction reduction) {
  return loss_of(model(batch.ids), batch.next, reduction);
}

/// Trains the model until it has taken all steps or the user stops it, then calls `keep`; gives back the exit status.
/// texts: the ids of lines, or of one long text, from which it learns pieces
int train(Writer& writer, const std::vector<PackedIds>& texts, const examples::TrainingOptions& options,
          const std::function<void()>& keep) {
  examples::Batches lines(texts, options.batch_size);
  const auto parameters = tg::parameters(writer.model);
  examples::TrainingState state(parameters, options);
  const auto next_loss = [&] {
    const auto batch = writer.writes_lines()
                           ? examples::pad(texts, lines.next(state.place))
                           : random_pieces(texts.front(), options.batch_size, writer.options.context + 1);
    return examples::StepLoss{loss_of(writer.model, shift(batch.ids), tg::Reduction::mean), batch.tokens};
  };
  return examples::train(state, parameters, options, {.next_loss = next_loss, .keep = keep});
}

/// exp(mean of -log p) over the characters that follow others: the model is as unsure as if it had to choose among so
/// many that are equally likely.
double perplexity(const LanguageModel<>& model, const std::vector<Ids>& sequences) {
  std::vector<std::size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), 0);
  constexpr std::size_t batch_size = 64;
  double loss = 0;
  std::size_t count = 0;
  for (std::size_t start = 0; start < order.size(); start += batch_size) {
    const auto chosen = std::span(order).subspan(start, std::min(batch_size, order.size() - start));
    const auto batch = examples::pad(sequences, chosen);
    loss += double(loss_of(model, shift(batch.ids), tg::Reduction::sum).item());
    count += batch.tokens - chosen.size();  // nothing is before the first
  }
  return std::exp(loss / double(count));
}

/// The same of a model that knows only how often each character is in the sequences it learned from.
double perplexity_by_frequency(const std::vector<PackedIds>& train, const std::vector<Ids>& test,
                               std::size_t vocabulary) {
  std::vector<double> counts(vocabulary, 1);  // as if each had been seen once more: none is impossible
  for (const PackedIds& ids : train)
    for (std::size_t t = 1; t < ids.size(); ++t) ++counts[std::size_t(ids[t])];
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);

  double loss = 0;
  std::size_t count = 0;
  for (const Ids& ids : test)
    for (std::size_t t = 1; t < ids.size(); ++t, ++count) loss -= std::log(counts[std::size_t(ids[t])] / all);
  return std::exp(loss / double(count));
}

std::string two_decimals(double number) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << number;
  return text.str();
}

/// Writes lines that the list does not have, each once, and says how many others the model wrote.
void invent_lines(const Writer& writer, const Ids& prompt, std::size_t count, double temperature) {
  std::cout << "\ninvented " << (writer.source == Source::words ? "words" : "lines") << ":\n";
  std::set<std::string> invented;
  std::size_t known = 0, again = 0;
  while (invented.size() < count && (known + again) / 20 < count) {
    const std::string line = writer.write_line(prompt, temperature);
    if (writer.list.contains(line))
      ++known;
    else if (invented.insert(line).second)
      std::cout << "  " << examples::printable(line) << std::endl;
    else
      ++again;
  }
  std::cout << "left out: " << known << " that are in the list, " << again << " that came again\n";
}

void continue_text(const Writer& writer, Ids ids, const std::string& prompt, std::size_t count, double temperature) {
  std::cout << "\nwritten by the model:\n" << examples::printable_text(prompt);
  for (; count > 0; --count) {
    ids.push_back(writer.choose_next(ids, temperature));
    std::cout << examples::printable_text(writer.vocabulary.token(ids.back())) << std::flush;
  }
  std::cout << '\n';
}

void write(const Writer& writer, const Options& options) {
  tg::manual_seed(options.seed);  // anew, so that a loaded model writes what it wrote when it was trained
  const examples::Text prompt = examples::decode(options.prompt);
  if (writer.writes_lines())
    invent_lines(writer, writer.read_prompt(prompt), options.length.value_or(20), options.temperature);
  else
    continue_text(writer, writer.read_prompt(prompt), options.prompt, options.length.value_or(500),
                  options.temperature);
}

/// Shows how the model comes to what it expects in the text: the attention, and how the logarithm of the text's
/// probability grows with each weight.
void explain(const Writer& writer, const examples::ExplainOptions& options) {
  Ids ids = writer.read_explained(examples::decode(options.text));
  const std::vector<std::string> shown = writer.shown(ids);
  ids.push_back(writer.writes_lines() ? Vocabulary::end : Vocabulary::padding);  // a text may go on with anything
  const std::size_t count = ids.size() - (writer.writes_lines() ? 1 : 2);        // of what follows something
  const std::size_t chosen[] = {0};
  const auto [input, next] = shift(examples::pad({ids}, chosen).ids);  // (1, T)

  tg::Tape tape;
  auto [logits, weights] = writer.model.with_weights(input);  // (1, T, vocabulary), (1, heads, T, T)
  weights.retain_grad();
  const auto log_probability = -loss_of(logits, next, tg::Reduction::sum);
  log_probability.backward();

  const std::string perplexity = two_decimals(std::exp(-double(log_probability.item()) / double(count)));
  std::cout << "\nexplained: perplexity " << perplexity << " a character, and where the attention is to be seen\n";
  examples::write_attention(tg::attention_map(weights, 0, shown, shown), options.name,
                            options.text + ", perplexity " + perplexity);
}

/// Finishes what the user asked for with a model that has learned.
void use(const Writer& writer, const Options& options) {
  write(writer, options);
  if (!options.explain.text.empty()) explain(writer, options.explain);
}

/// What is wrong with the texts to use it on is said before the long work.
void check_use(const Writer& writer, const Options& options) {
  writer.read_prompt(examples::decode(options.prompt));
  if (!options.explain.text.empty()) writer.read_explained(examples::decode(options.explain.text));
}

std::vector<PackedIds> encode_all(const Writer& writer, const std::vector<std::string>& texts) {
  std::vector<PackedIds> encoded;
  for (const std::string& text : texts) encoded.push_back(writer.encode(text));
  return encoded;
}

Writer make_writer(const Corpus& corpus, const Options& options) {
  Writer writer{options.source, make_vocabulary(corpus), {}, options.model};
  if (writer.writes_lines())
    for (const auto* lines : {&corpus.train, &corpus.test}) writer.list.insert(lines->begin(), lines->end());
  return writer;
}

void check_files(const Options& options) {
  std::vector<std::string> outputs = examples::attention_files(options.explain), inputs{options.data, options.load};
  outputs.push_back(options.save);
  if (options.source == Source::words && options.load.empty())
    inputs.push_back(examples::word_list_path(options.language, "--language"));
  examples::check_outputs(outputs, inputs);
  if (!options.save.empty() || !options.explain.text.empty()) examples::outlive_reader();
}

int learn_text(const Options& options) {
  const Corpus corpus = read_corpus(options, options.source);
  Writer writer = make_writer(corpus, options);
  check_use(writer, options);
  tg::print(std::cout, writer.model);

  const auto texts = encode_all(writer, corpus.train);
  const auto tests = cut(encode_all(writer, corpus.test), writer.options.context + 1);
  const int status = train(writer, texts, options.training, [&] {
    if (!options.save.empty()) save(writer, options.save);
  });

  std::cout << "\ntest perplexity " << two_decimals(perplexity(writer.model, tests))
            << " a character; knowing only how often each occurs gives "
            << two_decimals(perplexity_by_frequency(texts, tests, writer.vocabulary.size())) << '\n';
  use(writer, options);
  return status;
}

int use_saved_model(const Options& options) {
  const Writer writer = load(options.load);
  check_use(writer, options);
  tg::print(std::cout, writer.model);
  if (!options.data.empty()) {
    const Corpus corpus = read_corpus(options, writer.source);
    const auto tests = cut(encode_all(writer, corpus.test), writer.options.context + 1);
    std::cout << "\ntest perplexity " << two_decimals(perplexity(writer.model, tests)) << " a character\n";
  }
  use(writer, options);
  return 0;
}

/// The tutorial's run: learns by heart which id follows which in a batch of random ones.
int learn_random_ids(const Options& options) {
  constexpr std::size_t vocabulary = 26;
  const tg::Shape shape{options.training.batch_size, options.model.context};  // (B, T)
  const tg::IntArray ids = xt::floor(tg::uniform<double>(shape, 0, vocabulary));
  const tg::IntArray next = xt::roll(ids, -1);  // over the flattened ids: a row's last is to say the next row's first
  LanguageModel<> model(vocabulary, options.model);
  tg::print(std::cout, model);
  const auto parameters = tg::parameters(model);
  examples::TrainingState state(parameters, options.training);
  const auto next_loss = [&] { return examples::StepLoss{tg::cross_entropy(model(ids), next), ids.size()}; };
  return examples::train(state, parameters, options.training, {.next_loss = next_loss});
}

int main(int argc, char** argv) {
  CLI::App app;
  Options options;
  add_options(app, options);
  return examples::run_program(app, argc, argv, [&] {
    tg::manual_seed(options.seed);
    if (options.source == Source::random) return learn_random_ids(options);
    check_files(options);
    return options.load.empty() ? learn_text(options) : use_saved_model(options);
  });
}
