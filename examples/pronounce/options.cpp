#include "options.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "../common/given.hpp"
#include "../common/program.hpp"
#include "../common/resume.hpp"
#include "../common/settings.hpp"

namespace pronounce {

using examples::number;
using examples::OutputOptions;
using examples::TrainingOptions;
using examples::Unit;
using examples::whole_number;

namespace {

constexpr const char* description =
    R"(Learns how English words are pronounced: letters in, phonemes out. The model is an
encoder-decoder Transformer: the encoder reads the word, the decoder writes phoneme after
phoneme and attends to the letters.

Without options it trains on the CMU pronouncing dictionary and tests on every tenth word. With
--data it learns other pairs: to reverse texts, to write dates in another form, to spell names
in another script.)";

constexpr const char* footer = R"(
Examples:
  pronounce --save english.safetensors
  pronounce --load english.safetensors --pronounce tough though through
  pronounce --load english.safetensors --explain through --explain-to through
  pronounce --data dates.tsv --beams 4
  pronounce --steps 2000 --checkpoint run.safetensors --checkpoint-every 500
  pronounce --resume run.safetensors)";

using Given = examples::GivenRun<RunOptions, ModelOptions>;

const TrainingOptions default_training{.steps = 550,
                                       .batch_size = 128,
                                       .optimizer = examples::OptimizerKind::muon,
                                       .lr = 4e-3,
                                       .warmup = 100,
                                       .decay = examples::Decay::linear,
                                       .beta2 = 0.98,
                                       .weight_decay = 0.01,
                                       .clip = 1,
                                       .eval_every = 250};

void complete(PronounceOptions& options, const Given& given) {
  options.run = given.run.value_or({});
  options.run.seed = given.seed;
  options.model = given.model.value_or({});
  TrainingOptions training = default_training;
  training.warmup = std::min(training.warmup, given.training.value_or(training).steps / 5);
  options.training = given.training.value_or(training);
  options.outputs = given.outputs.value_or({});
}

/// Throws CLI::ValidationError for options without effect in combination with others.
void check_combinations(const CLI::App& app, const PronounceOptions& options) {
  using examples::refuse_with;
  refuse_with(app, "--load", {"--layers",       "--heads",
                              "--width",        "--dropout",
                              "--steps",        "--batch-size",
                              "--accumulate",   "--optimizer",
                              "--lr",           "--lr-floor",
                              "--warmup",       "--decay",
                              "--momentum",     "--beta2",
                              "--weight-decay", "--clip",
                              "--eval-every",   "--patience",
                              "--resume",       "--source",
                              "--target",       "--seed",
                              "--save",         "--best",
                              "--checkpoint",   "--checkpoint-every",
                              "--log",          "--plot",
                              "--divide-state"},
              "not allowed with --load, which uses a saved model without training");
  for (const char* option : {"--source", "--target", "--encoding"})
    if (app.count(option) > 0 && app.count("--data") == 0 && options.resume.empty())
      throw CLI::ValidationError(option, "requires --data");
  examples::check_output_options(app, options.outputs, options.training.eval_every > 0);
  examples::check_explain_options(app);
  examples::check_page_option(options.page, options.load.empty() || !options.run.data.empty());
  if (options.load.empty()) examples::check_training_options(app, options.training);
  const ModelOptions& model = options.model;
  examples::check_heads(model.heads, model.width);
  if (model.width / model.heads % 2 != 0)
    throw CLI::ValidationError("--heads", "expected an even width of heads, for rotary positions, got " +
                                              std::to_string(model.width / model.heads));
}

void add_data_options(CLI::App& app, examples::Given<RunOptions>& given) {
  const std::string group = "Training data";
  given
      .add(app, "--data", &RunOptions::data, "FILE", examples::some_path(),
           "Pairs to learn instead of pronunciations: lines of a source, a tab and\n"
           "a target; every tenth source is held out for testing")
      ->group(group);
  given
      .add_choice<examples::Encoding>(app, "--encoding", &RunOptions::encoding,
                                      {{"utf-8", examples::Encoding::utf8}, {"latin1", examples::Encoding::latin1}},
                                      "Encoding of the file: utf-8 (default) or latin1 (ISO-8859-1)")
      ->group(group);
  const auto add = [&](const char* name, Unit RunOptions::*member, const char* text) {
    given.add_choice<Unit>(app, name, member, {{"characters", Unit::characters}, {"words", Unit::words}}, text)
        ->group(group);
  };
  add("--source", &RunOptions::source, "Tokens of the file's sources (default characters)");
  add("--target", &RunOptions::target, "Tokens of its targets (default characters)");
}

void add_model_options(CLI::App& app, examples::Given<ModelOptions>& given) {
  const auto add = [&](const char* name, std::size_t ModelOptions::*member, std::size_t max_value, const char* text) {
    given.add(app, name, member, "N", whole_number(1, max_value), text)->group("The model");
  };
  add("--layers", &ModelOptions::layers, 1000, "Number of blocks of the encoder, and of the decoder (default 3)");
  add("--heads", &ModelOptions::heads, 100'000, "Number of attention heads, a divisor of the width (default 4)");
  add("--width", &ModelOptions::width, 100'000, "Embedding width (default 128)");
  given
      .add(app, "--dropout", &ModelOptions::dropout, "P", number(0, 0.99),
           "Dropout probability in training (default 0)")
      ->group("The model");
}

void add_use_options(CLI::App& app, PronounceOptions& options, examples::Given<OutputOptions>& given) {
  const std::string group = "Saving and using the model";
  given
      .add(app, "--save", &OutputOptions::save, "FILE", examples::some_path(),
           "Save the model here after training, also after Ctrl-C")
      ->group(group);
  app.add_option("--load", options.load,
                 "Use a saved model instead of training one; with --data, test it on\n"
                 "every tenth source of that file, otherwise on the dictionary")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(group);
  app.add_option("--beams", options.beams,
                 "Number of beams in the search for the likeliest target\n(default 1: greedy)")
      ->type_name("N")
      ->check(whole_number(1, 1000))
      ->group(group);
  app.add_option("--pronounce", options.words, "Print the targets of these sources")
      ->type_name("WORD...")
      ->check(examples::some_text())
      ->group(group);
  examples::add_explain_options(app, options.explain, group, examples::some_text());
  examples::add_page_option(app, options.page, group, "", examples::some_text());
}

}  // namespace

void add_options(CLI::App& app, PronounceOptions& options) {
  app.name("pronounce");
  app.description(description);
  app.footer(footer);
  app.get_formatter()->column_width(26);

  const auto given = std::make_shared<Given>();
  add_data_options(app, given->run);
  add_model_options(app, given->model);
  examples::add_training_options(app, given->training, given->seed);
  examples::add_validation_options(app, given->training);
  examples::add_ranks_options(app, options.divide_state);
  examples::add_output_options(app, given->outputs, options.resume);
  add_use_options(app, options, given->outputs);
  app.callback([&app, &options, given] {
    if (options.resume.empty())
      complete(options, *given);
    else
      examples::resume(app, options, *given, examples::read_saved<SavedRun>(options.resume));
    check_combinations(app, options);
    examples::require_utf8_in_saved(app, options.outputs, {{"--data", options.run.data}});
  });
}

}  // namespace pronounce
