/// Trains a character-level language model and generates text. By default it invents English words; `language_model
/// --help` lists the options.

#include <tapegrad/tapegrad.hpp>

#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/printable.hpp"
#include "../common/program.hpp"
#include "../common/progress.hpp"
#include "../common/ranks.hpp"
#include "../common/training.hpp"
#include "../common/word_lists.hpp"
#include "../gpt/pieces.hpp"
#include "data.hpp"
#include "evaluate.hpp"
#include "options.hpp"
#include "run.hpp"
#include "writer.hpp"
#include "writing.hpp"

namespace tg = tapegrad;

std::vector<PackedIds> encode_all(const Writer& writer, const std::vector<std::string>& texts) {
  std::vector<PackedIds> encoded;
  for (const std::string& text : texts) encoded.push_back(writer.encode(text));
  return encoded;
}

/// The test data, cut into sequences of at most context + 1 ids.
std::vector<examples::Ids> tests_of(const Writer& writer, const Corpus& corpus) {
  return cut(encode_all(writer, corpus.test), writer.options.context + 1);
}

Writer make_writer(const Corpus& corpus, const LanguageModelOptions& options) {
  Writer writer{options.source, make_vocabulary(corpus), {}, options.model};
  if (writer.writes_lines())
    for (const auto* lines : {&corpus.train, &corpus.test}) writer.list.insert(lines->begin(), lines->end());
  return writer;
}

/// Prints the model's loss and perplexity on the test data; with `train`, also those of its character frequencies.
void print_test(Writer& writer, const std::vector<examples::Ids>& tests, const std::vector<PackedIds>* train) {
  const double loss = mean_loss(writer.model, tests);
  std::ostringstream line;
  line << std::fixed << "\nvalidation loss " << std::setprecision(4) << loss << " on all "
       << examples::with_commas(predicted_characters(tests)) << " test characters\ntest perplexity "
       << std::setprecision(2) << std::exp(loss) << " per character";
  if (train)
    line << "; character frequencies alone give "
         << std::exp(mean_loss_by_frequency(*train, tests, writer.vocabulary.size()));
  std::cout << line.str() << '\n';
}

int learn_text(LanguageModelOptions options) {
  const Corpus corpus = read_corpus(options, options.source);
  const std::string print = fingerprint(corpus);
  if (!options.resume.empty() && examples::read_saved<SavedRun>(options.resume).fingerprint != print)
    throw std::runtime_error(examples::printable(corpus.name) + ": expected the run's training texts, got others");
  Writer writer = options.resume.empty() ? make_writer(corpus, options) : load(options.resume);
  check_use(writer, options);
  tg::print(std::cout, writer.model);

  const auto tests = tests_of(writer, corpus);
  const Texts texts{encode_all(writer, corpus.train), validation_part(tests)};
  if (options.minutes > 0) {
    options.training.steps = steps_within(options.minutes, writer, texts, options);
    options.training.warmup = std::min(options.training.warmup, options.training.steps / 10);  // as in complete()
    std::cout << examples::with_commas(options.training.steps)
              << (options.training.steps == 1 ? " step takes about " : " steps take about ") << options.minutes
              << (options.minutes == 1 ? " minute\n" : " minutes\n");
  }
  const int status = train(writer, texts, options, print);
  print_test(writer, tests, &texts.train);
  if (!examples::is_first_rank()) return status;
  if (!options.page.file.empty()) show_step(writer, options.page, tests);
  use(writer, options);
  return status;
}

int use_saved_model(const LanguageModelOptions& options) {
  Writer writer = load(options.load);
  check_use(writer, options);
  tg::print(std::cout, writer.model);
  std::vector<examples::Ids> tests;
  if (!options.run.data.empty()) {
    tests = tests_of(writer, read_corpus(options, writer.source));
    print_test(writer, tests, nullptr);
  }
  if (!examples::is_first_rank()) return 0;
  if (!options.page.file.empty()) show_step(writer, options.page, tests);
  use(writer, options);
  return 0;
}

/// Memorizes the next ids in a batch of random ids.
int learn_random_ids(const LanguageModelOptions& options) {
  constexpr std::size_t vocabulary = 26;
  const tg::Shape shape{options.training.batch_size, options.model.context};  // (B, T)
  const tg::IntArray ids = xt::floor(tg::uniform<double>(shape, 0, vocabulary));
  const tg::IntArray next = xt::roll(ids, -1);  // of the flattened ids: a row's last id predicts the next row's first
  LanguageModel<> model(vocabulary, options.model);
  tg::print(std::cout, model);
  const auto parameters = tg::parameters(model);
  examples::TrainingState state(parameters, options.training);
  const tg::mpi::Group ranks;
  const std::size_t begin = shape[0] * ranks.rank() / ranks.size(), end = shape[0] * (ranks.rank() + 1) / ranks.size();
  const tg::IntArray own = xt::view(ids, xt::range(begin, end)), own_next = xt::view(next, xt::range(begin, end));
  const auto next_loss = [&, batch = std::size_t{0}]() mutable {
    if (own.size() == 0) return examples::StepLoss{{}, 0, 0};
    const examples::OwnDraws draws(batch++);
    return examples::StepLoss{tg::cross_entropy(model(own, options.recompute), own_next), own.size(), own.size()};
  };
  return examples::train(state, parameters, options.training,
                         {.next_loss = next_loss, .log = options.outputs.log, .plot = options.outputs.plot});
}

void prepare_outputs(const LanguageModelOptions& options) {
  std::vector<std::string> inputs{options.run.data, options.load};
  if (options.source == Source::words && options.load.empty())
    inputs.push_back(examples::word_list_path(options.run.language, "--language"));
  examples::prepare_outputs(options.outputs, options.page, options.explain, options.resume, inputs);
}

int main(int argc, char** argv) {
  CLI::App app;
  LanguageModelOptions options;
  add_options(app, options);
  return examples::run_program(app, argc, argv, [&] {
    tg::manual_seed(options.run.seed);
    if (!examples::is_first_rank()) examples::write_nothing(options.outputs, options.page);
    prepare_outputs(options);
    if (options.source == Source::random) return learn_random_ids(options);
    return options.load.empty() ? learn_text(options) : use_saved_model(options);
  });
}
