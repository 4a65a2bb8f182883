#include "options.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>

#include "../common/given.hpp"
#include "../common/program.hpp"
#include "../common/word_lists.hpp"

using examples::number;
using examples::whole_number;

namespace {

constexpr const char* description =
    R"(Trains a classifier of texts: it recognizes the language of a word, or any labels of your
own. The model is small enough to read in a minute: an embedding of characters or words,
attention between them, their mean, and a linear layer.

Without options it learns to distinguish six languages by 10,000 words of each, from
Debian's word lists, and tests on held-out words. The defaults of sizes and rates depend
on the kind and the amount of data.)";

constexpr const char* footer = R"(
Examples:
  text_classifier --classify through weltschmerz buongiorno
  text_classifier --languages danish dutch german --save nordsea.safetensors
  text_classifier --load nordsea.safetensors --classify bibliotek
  text_classifier --explain schmetterling --explain-to butterfly
  text_classifier --page butterfly.html schmetterling
  text_classifier --data reviews.txt --classify "a gripping story" dull
  text_classifier --data reviews.txt --validation 0.1 --patience 5
  text_classifier --data reviews.txt --folds 10
  text_classifier --data random)";

/// A placeholder for a number of steps computed from the number of texts.
constexpr std::size_t automatic_steps = 0;

/// The defaults of a source.
struct Defaults {
  ClassifierOptions model;
  examples::TrainingOptions training;
};

Defaults defaults_for(DataKind source, examples::Unit unit) {
  using examples::Decay, examples::OptimizerKind;
  switch (source) {
    case DataKind::word_lists:
      return {{.width = 64, .heads = 8, .positions = true, .max_length = 32},
              {.steps = 12000, .batch_size = 64, .lr = 0.05, .decay = Decay::linear, .momentum = 0.9}};
    case DataKind::files:
      if (unit == examples::Unit::characters)
        return {{.width = 64, .heads = 8, .positions = true, .max_length = 256},
                {.steps = 3000, .batch_size = 64, .lr = 0.05, .decay = Decay::linear, .momentum = 0.9}};
      // Most words are rare. A small init_std keeps random initial vectors from outweighing trained ones, and
      // token_dropout prevents memorizing texts by a single rare word.
      return {{.width = 32,
               .heads = 4,
               .min_count = 1,
               .prior = true,
               .residual = true,
               .init_std = 0.1,
               .token_dropout = 0.7,
               .dropout = 0.6,
               .max_length = 256},
              {.steps = automatic_steps,
               .batch_size = 64,
               .optimizer = OptimizerKind::adamw,
               .lr = 0.002,
               .decay = Decay::linear,
               .weight_decay = 0.01}};
    case DataKind::random:  // the tutorial's run
      return {{.width = 512, .heads = 1, .max_length = 100},
              {.steps = 1000, .batch_size = 32, .lr = 0.01, .decay = Decay::none}};
  }
  throw std::logic_error("text_classifier: a source without defaults");
}

/// The given options among those with defaults that depend on others.
struct Given {
  std::optional<examples::Unit> unit;
  examples::Given<ClassifierOptions> model;
  examples::Given<examples::TrainingOptions> training;
};

}  // namespace

examples::TrainingOptions Options::training_with(std::size_t texts) const {
  examples::TrainingOptions chosen = training;
  if (chosen.steps == automatic_steps) chosen.steps = std::max<std::size_t>(1000, 7 * texts / chosen.batch_size);
  return chosen;
}

namespace {

void complete(Options& options, const Given& given) {
  const bool own_files = !options.data.empty() || !options.train.empty();
  options.source = options.data == "random" ? DataKind::random : own_files ? DataKind::files : DataKind::word_lists;

  using examples::Unit;
  options.unit = given.unit.value_or(options.source == DataKind::files ? Unit::words : Unit::characters);
  auto [model, training] = defaults_for(options.source, options.unit);
  options.model = given.model.value_or(model);
  if (options.validation > 0) training.eval_every = 200;
  options.training = given.training.value_or(training);
}

/// Throws CLI::ValidationError for options without effect, or with a misleading one, in combination with others.
void check_combinations(const CLI::App& app, const Options& options) {
  using examples::refuse_with;
  const auto given = [&](const char* option) { return app.count(option) > 0; };
  for (const char* option : {"--data", "--train", "--test"})
    refuse_with(app, option, {"--languages", "--words"},
                std::string("not allowed with ") + option + ", which replaces it");
  refuse_with(app, "--data", {"--train", "--test"}, "not allowed with --data, which holds out its own test data");
  refuse_with(app, "--load",
              {"--languages",     "--words",        "--train",       "--tokens",     "--width",      "--heads",
               "--positions",     "--pairs",        "--prior",       "--residual",   "--init-std",   "--dropout",
               "--token-dropout", "--max-length",   "--min-count",   "--steps",      "--batch-size", "--accumulate",
               "--optimizer",     "--lr",           "--lr-floor",    "--warmup",     "--decay",      "--momentum",
               "--beta2",         "--weight-decay", "--clip",        "--validation", "--eval-every", "--patience",
               "--folds",         "--save",         "--divide-state"},
              "not allowed with --load, which uses a saved model without training");
  refuse_with(app, "--folds", {"--train", "--test"}, "not allowed with --folds, which tests on all texts in turn");
  refuse_with(app, "--folds", {"--save", "--classify", "--explain", "--page"},
              "not allowed with --folds, which measures accuracy without keeping a model");
  if (options.source == DataKind::random)
    refuse_with(app, "--data",
                {"--tokens", "--encoding", "--min-count", "--pairs", "--prior", "--max-length", "--validation",
                 "--folds", "--save", "--load", "--classify", "--explain", "--page"},
                "not allowed with --data random, whose sequences are not text");
  if (given("--train") && !given("--test")) throw CLI::ValidationError("--train", "requires --test");
  if (given("--test") && !given("--train") && !given("--load"))
    throw CLI::ValidationError("--test", "requires --train or --load");
  if (given("--load") &&
      std::ranges::none_of(std::array{"--classify", "--explain", "--page", "--data", "--test"}, given))
    throw CLI::ValidationError("--load", "requires --classify, --explain, --page, --data or --test");
  if (given("--tokens") && options.source == DataKind::word_lists)
    throw CLI::ValidationError("--tokens", "requires --data or --train");
  if (given("--encoding") && options.source == DataKind::word_lists && !given("--test"))
    throw CLI::ValidationError("--encoding", "requires --data, --train or --test");
  for (const char* option : {"--eval-every", "--patience"})
    if (given(option) && !given("--validation")) throw CLI::ValidationError(option, "requires --validation");
  examples::check_explain_options(app);
  examples::check_page_option(options.page, options.needs_data());
  examples::check_training_options(app, options.training);
  if (options.training.optimizer == examples::OptimizerKind::muon)
    throw CLI::ValidationError("--optimizer", "expected sgd or adamw, got muon, which is for models with blocks");
  examples::check_heads(options.model.heads, options.model.width);
}

const std::string training_data = "Training data", the_model = "The model", keeping = "Saving and using the model";

void add_data_options(CLI::App& app, Options& options, Given& given) {
  app.add_option("--languages", options.languages,
                 "Languages to distinguish, two or more of " + examples::known_languages() +
                     ",\nor paths of word lists, one word per line")
      ->type_name("NAME")
      ->expected(2, 1000)
      ->group(training_data);
  app.add_option("--words", options.words, "Number of words of each language (default 10000)")
      ->type_name("N")
      ->check(whole_number(10))
      ->group(training_data);
  app.add_option("--data", options.data,
                 "File with a label, a space and a text on each line; every tenth line\n"
                 "is held out for testing. Or 'random': the tutorial's random sequences")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(training_data);
  app.add_option("--train", options.train, "File of the same format, used only for training")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(training_data);
  app.add_option("--test", options.test, "File of the same format, used only for testing")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(training_data);
  examples::add_choice<examples::Unit>(app, "--tokens", given.unit,
                                       {{"characters", examples::Unit::characters}, {"words", examples::Unit::words}},
                                       "Tokens of a file's texts: characters or words (default)")
      ->group(training_data);
  examples::add_choice<examples::Encoding>(
      app, "--encoding", options.encoding,
      {{"utf-8", examples::Encoding::utf8}, {"latin1", examples::Encoding::latin1}},
      "Encoding of the files: utf-8 (default) or latin1 (ISO-8859-1)")
      ->group(training_data);
}

void add_model_options(CLI::App& app, examples::Given<ClassifierOptions>& given) {
  using O = ClassifierOptions;
  const auto add = [&](const char* name, auto member, const char* type, const CLI::Validator& check, const char* text) {
    given.add(app, name, member, type, check, text)->group(the_model);
  };
  const auto add_yes_or_no = [&](const char* name, bool O::*member, const char* text) {
    given.add_choice<bool>(app, name, member, {{"yes", true}, {"no", false}}, text)->group(the_model);
  };
  add("--width", &O::width, "N", whole_number(1), "Embedding width of a character or word");
  add("--heads", &O::heads, "N", whole_number(1), "Number of attention heads, a divisor of the width");
  add("--max-length", &O::max_length, "N", whole_number(3),
      "Maximum length in characters or words, including marks at the\nbeginning and the end; longer texts are "
      "truncated");
  add("--min-count", &O::min_count, "N", whole_number(1),
      "Minimum count of a character or word in the training texts to get a\nvector of its own (default 2, or 1 for "
      "words)");
  add("--init-std", &O::init_std, "STD", number(0, 100),
      "Standard deviation of the initial vectors (default 1 for characters,\nless for words, since most are rare)");
  add("--dropout", &O::dropout, "P", number(0, 0.99), "Dropout probability in training");
  add("--token-dropout", &O::token_dropout, "P", number(0, 0.99),
      "Dropout probability of whole characters, words and pairs");
  add_yes_or_no("--positions", &O::positions, "Whether to learn a vector for each position");
  add_yes_or_no("--pairs", &O::pairs, "Whether to learn a vector for each pair of adjacent characters or\nwords");
  add_yes_or_no(
      "--prior", &O::prior,
      "Whether the model corrects the scores of naive Bayes, or starts from\nnothing (default yes for words)");
  add_yes_or_no("--residual", &O::residual, "Whether the attention has a residual connection");
}

void add_test_options(CLI::App& app, Options& options, Given& given) {
  app.add_option("--validation", options.validation,
                 "Share of the training texts to hold out. The model gets the weights\n"
                 "with the lowest loss on them, measured every 200 steps or as set\n"
                 "by --eval-every")
      ->type_name("SHARE")
      ->check(number(0.001, 0.9))
      ->group("Training");
  examples::add_validation_options(app, given.training);
  examples::add_ranks_options(app, options.divide_state);
  app.add_option("--folds", options.folds,
                 "Cross-validation: train K models, each tested on a different part\n"
                 "of the texts")
      ->type_name("K")
      ->check(whole_number(2))
      ->group("Training");
}

void add_use_options(CLI::App& app, Options& options) {
  app.add_option("--save", options.save, "Save the model here after training, also after Ctrl-C")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(keeping);
  app.add_option("--load", options.load, "Use a saved model instead of training one")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(keeping);
  app.add_option("--classify", options.classify, "Classify these words; quote texts of several words")
      ->type_name("WORD")
      ->check(examples::any_text())
      ->group(keeping);
  examples::add_explain_options(app, options.explain, keeping, examples::any_text());
  examples::add_page_option(app, options.page, keeping,
                            "A test text\n"
                            "has its own label, your text the predicted one",
                            examples::any_text());
}

}  // namespace

void add_options(CLI::App& app, Options& options) {
  app.name("text_classifier");
  app.description(description);
  app.footer(footer);
  app.get_formatter()->column_width(26);

  const auto given = std::make_shared<Given>();
  add_data_options(app, options, *given);
  add_model_options(app, given->model);
  examples::add_training_options(app, given->training, options.seed);
  add_test_options(app, options, *given);
  add_use_options(app, options);
  app.callback([&app, &options, given] {
    complete(options, *given);
    check_combinations(app, options);
  });
}
