#include "options.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "../common/given.hpp"
#include "../common/program.hpp"
#include "../common/resume.hpp"
#include "../common/settings.hpp"
#include "../common/word_lists.hpp"
#include "defaults.hpp"

using examples::number;
using examples::whole_number;

namespace {

constexpr const char* description =
    R"(Trains a language model that predicts the next character, and generates text. The model is a
GPT: an embedding of characters, Transformer blocks in which each character attends to the
previous ones, and a linear layer. With --layers 0, a single attention replaces the blocks.

Without options it trains on Debian's English word list, tests on a held-out tenth of the
words, and invents new ones. The defaults of sizes and rates depend on the data.)";

constexpr const char* footer = R"(
Examples:
  language_model --language french --save french.safetensors
  language_model --load french.safetensors --prompt anti --length 5
  language_model --explain possibility --explain-to possibility
  language_model --page possibility.html possibility
  language_model --data names.txt --lines
  language_model --data shakespeare.txt --prompt "ROMEO: " --length 1000
  language_model --data shakespeare.txt --checkpoint run.safetensors --checkpoint-every 500
  language_model --resume run.safetensors
  language_model --data random --heads 8)";

using examples::OutputOptions;
using tapegrad::Activation;

using Given = examples::GivenRun<RunOptions, ModelOptions>;

Source source_of(const RunOptions& run) {
  return run.data.empty()       ? Source::words
         : run.data == "random" ? Source::random
         : run.lines            ? Source::lines
                                : Source::text;
}

void complete(LanguageModelOptions& options, const Given& given) {
  options.run = given.run.value_or({});
  options.run.seed = given.seed;
  options.source = source_of(options.run);
  Defaults defaults = defaults_for(options.source);
  const Budget budget = budget_for(options.minutes);
  if (options.minutes > 0 && options.depth == 0) options.depth = budget.depth;
  if (options.depth > 0) set_depth(defaults, options.depth, options.source);
  if (options.minutes > 0) {
    defaults.model.dropout = budget.dropout;
    if (options.source == Source::text) {
      defaults.model.context = budget.context;
      defaults.training.weight_decay = budget.weight_decay.value_or(defaults.training.weight_decay);
    }
  }
  const examples::TrainingOptions training = given.training.value_or(defaults.training);
  defaults.training.warmup = std::min(defaults.training.warmup, training.steps / 10);  // shorter for short runs
  defaults.training.lr_floor = std::min(defaults.training.lr_floor, training.lr / 10);
  options.model = given.model.value_or(defaults.model);
  if (options.model.width != defaults.model.width || options.model.activation != defaults.model.activation)
    options.model.feed_forward = 0;  // the dial's fits only its own width and activation
  options.training = given.training.value_or(defaults.training);
  options.outputs = given.outputs.value_or({});
}

void check_heads(const ModelOptions& model) {
  examples::check_heads(model.heads, model.width);
  const auto require = [](const char* option, bool holds, const std::string& expected) {
    if (!holds) throw CLI::ValidationError(option, expected);
  };
  require("--kv-heads", model.kv_heads == 0 || model.heads % model.kv_heads == 0,
          "expected a divisor of the number of heads " + std::to_string(model.heads) + ", got " +
              std::to_string(model.kv_heads));
  if (model.positions != Positions::rotary) return;
  require("--positions", model.layers > 0,
          "expected learned or no with --layers 0, whose attention has no rotary positions");
  require("--positions", model.width / model.heads % 2 == 0,
          "expected an even width of heads for rotary, got " + std::to_string(model.width / model.heads));
}

/// Throws CLI::ValidationError for options without effect, or with a misleading one, in combination with others.
void check_combinations(const CLI::App& app, const LanguageModelOptions& options) {
  using examples::refuse_with;
  const std::vector<std::string> outputs{"--save", "--best", "--checkpoint", "--checkpoint-every", "--log", "--plot"},
      training{"--lines",    "--layers",     "--width",       "--heads",      "--context",   "--positions",
               "--tie",      "--norm",       "--activation",  "--kv-heads",   "--bias",      "--init",
               "--dropout",  "--steps",      "--batch-size",  "--accumulate", "--optimizer", "--lr",
               "--lr-floor", "--warmup",     "--decay",       "--momentum",   "--beta2",     "--weight-decay",
               "--clip",     "--eval-every", "--patience",    "--language",   "--resume",    "--recompute",
               "--depth",    "--minutes",    "--divide-state"};
  refuse_with(app, "--minutes", {"--steps"}, "not allowed with --minutes, which sets the number of steps");
  refuse_with(app, "--resume", {"--minutes", "--depth"}, "not allowed with --resume, which takes both from the run");
  refuse_with(app, "--data", {"--language"}, "not allowed with --data, which replaces it");
  for (const auto& others : {training, outputs})
    refuse_with(app, "--load", others, "not allowed with --load, which uses a saved model without training");
  if (options.source == Source::random)
    refuse_with(app, "--data",
                {"--lines", "--encoding", "--save", "--load", "--best", "--checkpoint", "--checkpoint-every",
                 "--eval-every", "--patience", "--prompt", "--length", "--temperature", "--top-k", "--top-p",
                 "--explain", "--page", "--minutes", "--depth", "--resume"},
                "not allowed with --data random, whose sequences are not text");
  const auto require = [&](const char* option, bool holds, const char* expected) {
    if (app.count(option) > 0 && !holds) throw CLI::ValidationError(option, expected);
  };
  const bool resumes = !options.resume.empty();
  require("--lines", resumes || app.count("--data") > 0, "requires --data");
  require("--encoding", resumes || app.count("--data") + app.count("--language") > 0, "requires --data or --language");
  for (const char* of_blocks : {"--norm", "--init", "--activation", "--kv-heads", "--bias", "--recompute"})
    require(of_blocks, options.model.layers > 0, "not allowed with --layers 0, which has no blocks");
  examples::check_output_options(app, options.outputs, options.training.eval_every > 0);
  examples::check_explain_options(app);
  examples::check_page_option(options.page, options.load.empty() || !options.run.data.empty());
  if (options.load.empty()) examples::check_training_options(app, options.training);
  check_heads(options.model);
}

const std::string training_data = "Training data", the_model = "The model", keeping = "Saving and using the model";

void add_data_options(CLI::App& app, examples::Given<RunOptions>& given) {
  given
      .add(app, "--language", &RunOptions::language, "NAME", {},
           "Language of the words to train on (default english):\n" + examples::known_languages() +
               ",\nor the path of a word list, one word per line")
      ->group(training_data);
  given
      .add(app, "--data", &RunOptions::data, "FILE", examples::some_path(),
           "Text to train on instead; its last tenth is held out for testing.\n"
           "Or 'random': random sequences, to be memorized")
      ->group(training_data);
  given
      .add_flag(app, "--lines", &RunOptions::lines,
                "Treat the file as a list, e.g. of names: each line is a separate\n"
                "text, and every tenth is held out for testing")
      ->group(training_data);
  given
      .add_choice<examples::Encoding>(app, "--encoding", &RunOptions::encoding,
                                      {{"utf-8", examples::Encoding::utf8}, {"latin1", examples::Encoding::latin1}},
                                      "Encoding of the file: utf-8 (default) or latin1 (ISO-8859-1)")
      ->group(training_data);
}

/// Adds the options that choose the defaults of others.
void add_dials(CLI::App& app, LanguageModelOptions& options) {
  app.add_option("--depth", options.depth,
                 "Number of Transformer blocks of a Llama-like model, which sets the\n"
                 "defaults of --width, --heads, --lr, --norm, --positions,\n"
                 "--activation and --bias; with --data FILE also --context and\n--batch-size")
      ->type_name("N")
      ->check(whole_number(1, 1000))
      ->group(the_model);
  app.add_option("--minutes", options.minutes,
                 "Time for training, which sets --steps and the defaults of --depth,\n"
                 "--dropout and, with --data FILE, --context and --weight-decay, and\n"
                 "limits --warmup to a tenth of the steps. Takes a few steps to\n"
                 "measure their time")
      ->type_name("M")
      ->check(number(0.001, 1e6))
      ->group("Training");
}

void add_model_options(CLI::App& app, examples::Given<ModelOptions>& given) {
  using O = ModelOptions;
  const auto add = [&](const char* name, auto member, const CLI::Validator& check, const char* text) {
    given.add(app, name, member, "N", check, text)->group(the_model);
  };
  const auto add_choice = [&]<class V>(const char* name, V O::*member,
                                       const std::vector<std::pair<std::string, V>>& names, const char* text) {
    given.add_choice<V>(app, name, member, names, text)->group(the_model);
  };
  const auto add_switch = [&](const char* name, bool O::*member, const char* text) {
    given.add_choice<bool>(app, name, member, {{"yes", true}, {"no", false}}, text)->group(the_model);
  };
  add("--layers", &O::layers, whole_number(0, 1000),
      "Number of Transformer blocks; 0: a single attention\ninstead of blocks");
  add("--heads", &O::heads, whole_number(1, longest_context), "Number of attention heads, a divisor of the width");
  add("--width", &O::width, whole_number(1, longest_context), "Embedding width of a character");
  add("--context", &O::context, whole_number(1, longest_context),
      "Context length in characters; longer lines of a list are truncated");
  add_choice("--positions", &O::positions,
             {{"learned", Positions::learned},
              {"rotary", Positions::rotary},
              {"no", Positions::none},
              {"yes", Positions::learned}},
             "Encoding of positions: a learned vector for each (yes is a synonym),\nor rotations of queries and "
             "keys");
  add_switch("--tie", &O::tie, "Whether the linear layer shares its weights with the embedding");
  add_choice("--norm", &O::norm, {{"layer", Norm::layer}, {"rms", Norm::rms}, {"no", Norm::none}, {"yes", Norm::layer}},
             "Norms of the blocks: LayerNorm (default; yes is a synonym) or\nRMSNorm");
  add_choice("--activation", &O::activation,
             {{"gelu", Activation::gelu},
              {"gelu_tanh", Activation::gelu_tanh},
              {"relu", Activation::relu},
              {"silu", Activation::silu},
              {"swiglu", Activation::swiglu}},
             "Activation of the blocks' feed-forward layers (default gelu). With\nswiglu, which has three layers, "
             "they are narrower: the number of\nweights stays the same");
  add("--kv-heads", &O::kv_heads, whole_number(1, longest_context),
      "Number of heads of keys and values, each shared by equally many of\n--heads (default: as many as heads)");
  add_switch("--bias", &O::bias, "Whether the blocks have biases (default yes)");
  given
      .add_choice<Initialization>(app, "--init", &O::init,
                                  {{"lecun", Initialization::lecun}, {"gpt2", Initialization::gpt2}},
                                  "Standard deviation of the blocks' initial weights: 1 / sqrt(inputs)\n"
                                  "(lecun, the default) or GPT-2's 0.02, which suits wide models")
      ->group(the_model);
  given.add(app, "--dropout", &O::dropout, "P", number(0, 0.99), "Dropout probability in training")->group(the_model);
}

void add_recompute_option(CLI::App& app, bool& recompute) {
  app.add_flag("--recompute", recompute,
               "Store only each block's input and recompute the rest in the backward\n"
               "pass: less memory, about a third more time, the same result")
      ->group("Training");
}

void add_use_options(CLI::App& app, LanguageModelOptions& options, examples::Given<OutputOptions>& given) {
  given
      .add(app, "--save", &OutputOptions::save, "FILE", examples::some_path(),
           "Save the model here after training, also after Ctrl-C")
      ->group(keeping);
  app.add_option("--load", options.load,
                 "Use a saved model instead of training one; with --data, test it on\nthat file's held-out tenth")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group(keeping);
  add_writing_options(app, options.writing, keeping,
                      {.prompt = "Beginning of the text, or of each line of a list",
                       .length = "Amount to generate: lines of a list (default 20) or characters\n"
                                 "of a text (default 500)",
                       .unit = "character"});
  examples::add_explain_options(app, options.explain, keeping, examples::some_text());
  examples::add_page_option(app, options.page, keeping,
                            "Long texts\n"
                            "are truncated to the context and the next character",
                            examples::some_text());
}

}  // namespace

void add_options(CLI::App& app, LanguageModelOptions& options) {
  app.name("language_model");
  app.description(description);
  app.footer(footer);
  app.get_formatter()->column_width(26);

  const auto given = std::make_shared<Given>();
  add_data_options(app, given->run);
  add_dials(app, options);
  add_model_options(app, given->model);
  examples::add_training_options(app, given->training, given->seed);
  examples::add_validation_options(app, given->training);
  examples::add_ranks_options(app, options.divide_state);
  add_recompute_option(app, options.recompute);
  examples::add_output_options(app, given->outputs, options.resume);
  add_use_options(app, options, given->outputs);
  app.callback([&app, &options, given] {
    if (options.resume.empty())
      complete(options, *given);
    else
      examples::resume(app, options, *given, examples::read_saved<SavedRun>(options.resume));
    options.source = source_of(options.run);
    check_combinations(app, options);
    examples::require_utf8_in_saved(app, options.outputs,
                                    {{"--data", options.run.data}, {"--language", options.run.language}});
  });
}
