#include "options.hpp"

#include <memory>
#include <stdexcept>

#include "../common/program.hpp"
#include "../common/word_lists.hpp"

using examples::number;
using examples::whole_number;

namespace {

constexpr const char* description =
    R"(Learns which character comes next, and writes on by itself. The model is small enough to
read in a minute: a vector for every character, attention to the characters before it, and
a linear layer.

Without options it learns the words of Debian's English word list, measures itself on a
tenth of them that it has not seen, and invents new ones. Sizes and rates that you do not
give are chosen to suit what is learned.)";

constexpr const char* footer = R"(
Examples:
  language_model --language french --save french.safetensors
  language_model --load french.safetensors --prompt anti --length 5
  language_model --explain possibility --explain-to possibility
  language_model --data names.txt --lines
  language_model --data shakespeare.txt --prompt "ROMEO: " --length 1000
  language_model --data random --heads 8)";

/// What suits each source.
struct Defaults {
  ModelOptions model;
  examples::TrainingOptions training;
};

Defaults defaults_for(Source source) {
  switch (source) {
    case Source::words:
    case Source::lines:
      return {{.width = 128, .heads = 16, .positions = true, .context = 32},
              {.steps = 20000, .batch_size = 32, .lr = 0.05, .decay = examples::Decay::linear, .momentum = 0.9}};
    case Source::text:
      return {{.width = 128, .heads = 16, .positions = true, .context = 16},
              {.steps = 12000, .batch_size = 32, .lr = 0.05, .decay = examples::Decay::linear, .momentum = 0.9}};
    case Source::random:  // the tutorial's run
      return {{.width = 512, .heads = 1, .positions = false, .context = 100},
              {.steps = 1000, .batch_size = 32, .lr = 0.01, .decay = examples::Decay::none}};
  }
  throw std::logic_error("language_model: a source without defaults");
}

/// The options whose default depends on others, as the user gave them.
struct Given {
  bool lines = false;
  std::optional<std::size_t> width, heads, context;
  std::optional<bool> positions;
  examples::Given<examples::TrainingOptions> training;
};

void complete(Options& options, const Given& given) {
  options.source = options.data.empty()       ? Source::words
                   : options.data == "random" ? Source::random
                   : given.lines              ? Source::lines
                                              : Source::text;
  const auto [model, training] = defaults_for(options.source);
  options.model = {.width = given.width.value_or(model.width),
                   .heads = given.heads.value_or(model.heads),
                   .positions = given.positions.value_or(model.positions),
                   .context = given.context.value_or(model.context)};
  options.training = given.training.value_or(training);
}

// Each option that does nothing, or something else than it says, beside another is refused.
void check_combinations(const CLI::App& app, const Options& options) {
  using examples::refuse_beside;
  refuse_beside(app, "--data", {"--language"}, "expected without --data, which names what to read instead");
  refuse_beside(app, "--load",
                {"--language", "--lines", "--width", "--heads", "--positions", "--context", "--steps", "--batch-size",
                 "--accumulate", "--optimizer", "--lr", "--lr-floor", "--warmup", "--decay", "--momentum", "--beta2",
                 "--weight-decay", "--clip", "--save"},
                "expected without --load, which takes a model as it was saved and trains no further");
  if (options.source == Source::random)
    refuse_beside(app, "--data",
                  {"--lines", "--encoding", "--save", "--load", "--prompt", "--length", "--temperature", "--explain"},
                  "expected without --data random, whose sequences are no text");
  if (app.count("--lines") > 0 && app.count("--data") == 0)
    throw CLI::ValidationError("--lines", "expected together with --data");
  if (app.count("--encoding") > 0 && app.count("--data") + app.count("--language") == 0)
    throw CLI::ValidationError("--encoding", "expected together with --data or --language");
  examples::check_explain_options(app);
  examples::check_training_options(app, options.training);
  examples::check_heads(options.model.heads, options.model.width);
}

const std::string what_to_learn = "What to learn from", the_model = "The model",
                  keeping = "Keeping and using the model";

void add_data_options(CLI::App& app, Options& options, Given& given) {
  app.add_option("--language", options.language,
                 "Language whose words to learn (default english):\n" + examples::known_languages() +
                     ",\nor the path of a word list of your own, a word a line")
      ->type_name("NAME")
      ->group(what_to_learn);
  app.add_option("--data", options.data,
                 "A text to learn instead; its last tenth is kept for the test.\n"
                 "Or 'random': the tutorial's random sequences")
      ->type_name("FILE")
      ->group(what_to_learn);
  app.add_flag("--lines", given.lines,
               "The file is a list, as of names: every line stands alone, and\n"
               "every tenth is kept for the test")
      ->group(what_to_learn);
  examples::add_choice<examples::Encoding>(
      app, "--encoding", options.encoding,
      {{"utf-8", examples::Encoding::utf8}, {"latin1", examples::Encoding::latin1}},
      "How your file is written: utf-8 (default) or latin1 (ISO-8859-1)")
      ->group(what_to_learn);
}

void add_model_options(CLI::App& app, Given& given) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    app.add_option(name, value, text)->type_name("N")->check(whole_number(1, longest_context))->group(the_model);
  };
  add("--width", given.width, "Numbers in the vector of a character");
  add("--heads", given.heads, "Heads of the attention; they divide the width");
  add("--context", given.context,
      "Characters of a text that the model sees at once; longer lines\nof a list lose their end");
  examples::add_choice<bool>(app, "--positions", given.positions, {{"yes", true}, {"no", false}},
                             "Whether to learn a vector for every position")
      ->group(the_model);
}

void add_use_options(CLI::App& app, Options& options) {
  const auto add = [&](const char* name, auto& value, const char* type, const char* text) {
    return app.add_option(name, value, text)->type_name(type)->group(keeping);
  };
  add("--save", options.save, "FILE", "Write the model here after training, also after Ctrl-C");
  add("--load", options.load, "FILE",
      "Use a saved model instead of training one; with --data, measure\nit on the tenth of that file that is kept for "
      "the test");
  add("--prompt", options.prompt, "TEXT", "How the text, or each line of a list, begins")->check(examples::some_text());
  add("--length", options.length, "N",
      "How much to write: lines of a list (default 20) or characters\nof a text (default 500)")
      ->check(whole_number(1));
  add("--temperature", options.temperature, "T",
      "How daring the writing is: at 1 each character comes as often as\n"
      "the model expects it, at 0 always the likeliest (default 0.8)")
      ->check(number(0, 1000));
  examples::add_explain_options(app, options.explain, keeping);
}

}  // namespace

void add_options(CLI::App& app, Options& options) {
  app.name("language_model");
  app.description(description);
  app.footer(footer);
  app.get_formatter()->column_width(26);

  const auto given = std::make_shared<Given>();
  add_data_options(app, options, *given);
  add_model_options(app, *given);
  examples::add_training_options(app, given->training, options.seed);
  add_use_options(app, options);
  app.callback([&app, &options, given] {
    complete(options, *given);
    check_combinations(app, options);
  });
}
