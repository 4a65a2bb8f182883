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
    R"(Learns from examples what a text is: which language a word is written in, or any labels
of your own. The model is small enough to read in a minute: a vector for every character
or word, attention between them, their mean, and a linear layer.

Without options it learns to tell six languages apart by 10,000 words of each, from
Debian's word lists, and tests itself on words that it has not seen. Sizes and rates that
you do not give are chosen to suit what is learned, and how much of it there is.)";

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
constexpr std::size_t as_many_as_suit = 0;

/// The defaults of a source.
struct Defaults {
  ModelOptions model;
  examples::TrainingOptions training;
};

Defaults defaults_for(Source source, examples::Unit unit) {
  using examples::Decay, examples::OptimizerKind;
  switch (source) {
    case Source::word_lists:
      return {{.width = 64, .heads = 8, .positions = true, .max_length = 32},
              {.steps = 12000, .batch_size = 64, .lr = 0.05, .decay = Decay::linear, .momentum = 0.9}};
    case Source::files:
      if (unit == examples::Unit::characters)
        return {{.width = 64, .heads = 8, .positions = true, .max_length = 256},
                {.steps = 3000, .batch_size = 64, .lr = 0.05, .decay = Decay::linear, .momentum = 0.9}};
      // Most words are rare. A small init_std keeps random initial vectors from outweighing trained ones, and
      // token_dropout prevents memorizing texts by a single rare word.
      return {{.width = 32,
               .heads = 4,
               .min_count = 1,
               .pairs = true,
               .residual = true,
               .init_std = 0.1,
               .token_dropout = 0.6,
               .dropout = 0.5,
               .max_length = 256},
              {.steps = as_many_as_suit,
               .batch_size = 64,
               .optimizer = OptimizerKind::adamw,
               .lr = 0.002,
               .decay = Decay::linear,
               .weight_decay = 0.01}};
    case Source::random:  // the tutorial's run
      return {{.width = 512, .heads = 1, .max_length = 100},
              {.steps = 1000, .batch_size = 32, .lr = 0.01, .decay = Decay::none}};
  }
  throw std::logic_error("text_classifier: a source without defaults");
}

/// The given options among those with defaults that depend on others.
struct Given {
  std::optional<examples::Unit> unit;
  examples::Given<ModelOptions> model;
  examples::Given<examples::TrainingOptions> training;
};

}  // namespace

examples::TrainingOptions Options::training_with(std::size_t texts) const {
  examples::TrainingOptions chosen = training;
  if (chosen.steps == as_many_as_suit) chosen.steps = std::max<std::size_t>(2000, 10 * texts / chosen.batch_size);
  return chosen;
}

namespace {

void complete(Options& options, const Given& given) {
  const bool own_files = !options.data.empty() || !options.train.empty();
  options.source = options.data == "random" ? Source::random : own_files ? Source::files : Source::word_lists;

  using examples::Unit;
  options.unit = given.unit.value_or(options.source == Source::files ? Unit::words : Unit::characters);
  auto [model, training] = defaults_for(options.source, options.unit);
  options.model = given.model.value_or(model);
  if (options.validation > 0) training.eval_every = 200;
  options.training = given.training.value_or(training);
}

/// Throws CLI::ValidationError for options without effect, or with a misleading one, in combination with others.
void check_combinations(const CLI::App& app, const Options& options) {
  using examples::refuse_beside;
  const auto given = [&](const char* option) { return app.count(option) > 0; };
  for (const char* option : {"--data", "--train", "--test"})
    refuse_beside(app, option, {"--languages", "--words"},
                  std::string("expected without ") + option + ", which names what to read instead");
  refuse_beside(app, "--data", {"--train", "--test"}, "expected without --data, which keeps a test of its own");
  refuse_beside(app, "--load",
                {"--languages",    "--words",     "--train",      "--tokens",     "--width",      "--heads",
                 "--positions",    "--pairs",     "--residual",   "--init-std",   "--dropout",    "--token-dropout",
                 "--max-length",   "--min-count", "--steps",      "--batch-size", "--accumulate", "--optimizer",
                 "--lr",           "--lr-floor",  "--warmup",     "--decay",      "--momentum",   "--beta2",
                 "--weight-decay", "--clip",      "--validation", "--eval-every", "--patience",   "--folds",
                 "--save"},
                "expected without --load, which takes a model as it was saved and trains no further");
  refuse_beside(app, "--folds", {"--train", "--test"}, "expected without --folds, which tests with all texts in turn");
  refuse_beside(app, "--folds", {"--save", "--classify", "--explain", "--page"},
                "expected without --folds, which leaves no model but tells how good one is");
  if (options.source == Source::random)
    refuse_beside(app, "--data",
                  {"--tokens", "--encoding", "--min-count", "--pairs", "--max-length", "--validation", "--folds",
                   "--save", "--load", "--classify", "--explain", "--page"},
                  "expected without --data random, whose sequences are no text");
  if (given("--train") && !given("--test")) throw CLI::ValidationError("--train", "expected together with --test");
  if (given("--test") && !given("--train") && !given("--load"))
    throw CLI::ValidationError("--test", "expected together with --train or --load");
  if (given("--load") &&
      std::ranges::none_of(std::array{"--classify", "--explain", "--page", "--data", "--test"}, given))
    throw CLI::ValidationError("--load", "expected together with --classify, --explain, --page, --data or --test");
  if (given("--tokens") && options.source == Source::word_lists)
    throw CLI::ValidationError("--tokens", "expected together with --data or --train");
  for (const char* option : {"--eval-every", "--patience"})
    if (given(option) && !given("--validation"))
      throw CLI::ValidationError(option, "expected together with --validation");
  examples::check_explain_options(app);
  examples::check_page_option(options.page, options.needs_data());
  examples::check_training_options(app, options.training);
  examples::check_heads(options.model.heads, options.model.width);
}

const std::string what_to_learn = "What to learn from", the_model = "The model",
                  keeping = "Keeping and using the model";

void add_data_options(CLI::App& app, Options& options, Given& given) {
  app.add_option("--languages", options.languages,
                 "Languages to tell apart, two or more of " + examples::known_languages() +
                     ",\nor paths of word lists of your own, a word a line")
      ->type_name("NAME")
      ->expected(2, 1000)
      ->group(what_to_learn);
  app.add_option("--words", options.words, "How many words of each language (default 10000)")
      ->type_name("N")
      ->check(whole_number(10))
      ->group(what_to_learn);
  app.add_option("--data", options.data,
                 "A file with a label, a space and a text on each line; every tenth line\n"
                 "is kept for the test. Or 'random': the tutorial's random sequences")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(what_to_learn);
  app.add_option("--train", options.train, "Such a file, all of it to learn from")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(what_to_learn);
  app.add_option("--test", options.test, "Such a file, all of it to test with")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(what_to_learn);
  examples::add_choice<examples::Unit>(app, "--tokens", given.unit,
                                       {{"characters", examples::Unit::characters}, {"words", examples::Unit::words}},
                                       "What the texts of a file are cut into: characters or words (default)")
      ->group(what_to_learn);
  examples::add_choice<examples::Encoding>(
      app, "--encoding", options.encoding,
      {{"utf-8", examples::Encoding::utf8}, {"latin1", examples::Encoding::latin1}},
      "How your files are written: utf-8 (default) or latin1 (ISO-8859-1)")
      ->group(what_to_learn);
}

void add_model_options(CLI::App& app, examples::Given<ModelOptions>& given) {
  using O = ModelOptions;
  const auto add = [&](const char* name, auto member, const char* type, const CLI::Validator& check, const char* text) {
    given.add(app, name, member, type, check, text)->group(the_model);
  };
  const auto add_yes_or_no = [&](const char* name, bool O::*member, const char* text) {
    given.add_choice<bool>(app, name, member, {{"yes", true}, {"no", false}}, text)->group(the_model);
  };
  add("--width", &O::width, "N", whole_number(1), "Numbers in the vector of a character or word");
  add("--heads", &O::heads, "N", whole_number(1), "Heads of the attention; they divide the width");
  add("--max-length", &O::max_length, "N", whole_number(3),
      "Longer texts lose their end: characters or words, with a\nmark at the begin and the end");
  add("--min-count", &O::min_count, "N", whole_number(1),
      "How often the texts to learn from must have a character or word\nthat gets a vector: 2, or 1 for words");
  add("--init-std", &O::init_std, "STD", number(0, 100),
      "Spread of the vectors before training: 1 for characters, less\nfor words, most of which are rare");
  add("--dropout", &O::dropout, "P", number(0, 0.99), "Share of the numbers to hide at random in training");
  add("--token-dropout", &O::token_dropout, "P", number(0, 0.99),
      "Share of the characters, words and pairs to hide so");
  add_yes_or_no("--positions", &O::positions, "Whether to learn a vector for every position");
  add_yes_or_no("--pairs", &O::pairs, "Whether to learn a vector for every two characters or words side\nby side");
  add_yes_or_no("--residual", &O::residual, "Whether each keeps its vector beside what it attends to");
}

void add_test_options(CLI::App& app, Options& options, Given& given) {
  app.add_option("--validation", options.validation,
                 "Share of the texts to learn from that is kept apart: the model gets\n"
                 "the weights that had the lowest loss on it, looked at every 200\n"
                 "steps or as --eval-every says")
      ->type_name("SHARE")
      ->check(number(0.001, 0.9))
      ->group("Training");
  examples::add_validation_options(app, given.training);
  examples::add_ranks_options(app, options.divide_state);
  app.add_option("--folds", options.folds,
                 "Cross-validation: learn so many times anew, each time tested with\n"
                 "another part of the texts")
      ->type_name("K")
      ->check(whole_number(2))
      ->group("Training");
}

void add_use_options(CLI::App& app, Options& options) {
  app.add_option("--save", options.save, "Write the model here after training, also after Ctrl-C")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(keeping);
  app.add_option("--load", options.load, "Use a saved model instead of training one")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(keeping);
  app.add_option("--classify", options.classify, "Say what these words are; texts of more words stand in quotes")
      ->type_name("WORD")
      ->check(examples::any_text())
      ->group(keeping);
  examples::add_explain_options(app, options.explain, keeping, examples::any_text());
  examples::add_page_option(app, options.page, keeping,
                            "The text's label is\n"
                            "its own in the test, or what the model takes yours for",
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
