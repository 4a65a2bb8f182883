#include "options.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "../common/given.hpp"
#include "../common/program.hpp"
#include "../common/resume.hpp"
#include "../common/settings.hpp"
#include "../gpt/model_options.hpp"

using examples::number;
using examples::TrainingOptions;
using examples::whole_number;

namespace {

constexpr const char* description =
    R"(Generates text with GPT-2 and Llama models, scores texts and fine-tunes the models. A model
is a folder in Hugging Face's format: config.json, model.safetensors, and tokenizer.json or
vocab.json with merges.txt. Models are saved in the same format, for use with PyTorch.)";

constexpr const char* footer = R"(
Examples:
  gpt2 gpt2/ --prompt "The old man said" --length 100
  gpt2 gpt2/ --score text.txt
  gpt2 gpt2/ --tokens text.txt
  gpt2 gpt2/ --train text.txt --save mine/
  gpt2 gpt2/ --train text.txt --lora 8 --save adapter/
  gpt2 gpt2/ --adapter adapter/ --prompt "Once"
  gpt2 gpt2/ --adapter adapter/ --merge --save both/
  gpt2 gpt2/ --prompt "Once" --explain "The cat sat on the mat"
  gpt2 vocabulary/ --train-tokenizer text.txt --vocabulary 5000)";

/// Defaults for fine-tuning: a rate low enough to preserve the model's knowledge, and few steps for a first result.
TrainingOptions defaults(bool lora) {
  return {.steps = 200,
          .batch_size = 4,
          .optimizer = examples::OptimizerKind::adamw,
          .lr = lora ? 1e-3 : 5e-5,
          .warmup = 20,
          .decay = examples::Decay::cosine,
          .beta2 = 0.99,
          .weight_decay = 0.01,
          .clip = 1,
          .eval_every = 50};
}

struct Given {
  examples::Given<FineTuneOptions> fine_tune;
  examples::Given<TrainingOptions> training;
  examples::Given<examples::OutputOptions> outputs;
  std::uint64_t seed = 0;
};

void complete(Gpt2Options& options, const Given& given) {
  options.fine_tune = given.fine_tune.value_or({});
  options.fine_tune.seed = given.seed;
  TrainingOptions training = defaults(options.fine_tune.lora > 0);
  const std::size_t steps = given.training.value_or(training).steps;
  training.warmup = std::min(training.warmup, steps / 10);
  training.eval_every = std::clamp<std::size_t>(steps / 4, 1, training.eval_every);
  options.training = given.training.value_or(training);
  options.outputs = given.outputs.value_or({});
}

void resume(const CLI::App& app, Gpt2Options& options, const Given& given) {
  const SavedFineTuning saved = examples::read_saved<SavedFineTuning>(options.resume);
  examples::resume(app, options, given, saved, saved.fine_tune.seed,
                   examples::ResumedPart<FineTuneOptions>{given.fine_tune, saved.fine_tune, options.fine_tune});
  options.merge |= saved.merge;
}

bool writes(const Gpt2Options& options) {
  const bool is_requested = !options.writing.prompt.empty() || options.writing.length;
  return is_requested || (!options.trains() && options.score.empty() && !options.explain.wanted &&
                          options.page.file.empty() && options.outputs.save.empty());
}

/// Throws CLI::ValidationError for training options without --train.
void check_untrained(const CLI::App& app, const Given& given) {
  std::vector<std::string> names = given.fine_tune.names();
  for (const auto& more : {given.training.names(), given.outputs.names()})
    names.insert(names.end(), more.begin(), more.end());
  if (app.count("--divide-state") > 0) names.push_back("--divide-state");
  for (const std::string& option : names)
    if (option != "--save") throw CLI::ValidationError(option, "requires --train");
}

/// Throws CLI::ValidationError for options without effect, or with a misleading one, in combination with others.
void check_combinations(const CLI::App& app, const Gpt2Options& options, const Given& given) {
  const auto require = [&](const std::string& option, bool holds, const std::string& expected) {
    if (app.count(option) > 0 && !holds) throw CLI::ValidationError(option, expected);
  };
  if (!options.trains()) check_untrained(app, given);
  require("--lora-alpha", options.fine_tune.lora > 0, "requires --lora");
  const bool has_updates = !options.adapter.empty() || options.fine_tune.lora > 0;
  require("--merge", has_updates && !(options.outputs.save.empty() && options.outputs.best.empty()),
          "requires --save, and --lora or --adapter with the updates to merge");
  require("--save", options.trains() || options.merge, "requires --train, or --adapter and --merge");
  require("--adapter", !options.trains(),
          "not allowed with --train; to train on top of an adapter, first write a merged model with --merge "
          "and --save");
  for (const char* choosing : {"--temperature", "--top-k", "--top-p"})
    require(choosing, options.writes, "requires --prompt or --length");
  require("--weights", !options.trains(), "not allowed with --train, which trains in float");
  require("--vocabulary", !options.train_tokenizer.empty(), "requires --train-tokenizer");
  if (!options.train_tokenizer.empty() && options.vocabulary == 0)
    throw CLI::ValidationError("--train-tokenizer", "requires --vocabulary");
  for (const char* alone : {"--train-tokenizer", "--tokens"})
    if (app.count(alone) > 0)
      for (const char* other :
           {"--train-tokenizer", "--tokens", "--train", "--resume", "--score", "--prompt", "--length", "--temperature",
            "--top-k", "--top-p", "--explain", "--page", "--weights", "--adapter", "--seed"})
        if (std::string(other) != alone)
          require(other, false, "not allowed with " + std::string(alone) + ", which uses only the tokenizer");
  require("--page", !options.bf16, "not allowed with --weights bf16, whose weights have no gradients");
  examples::check_explain_options(app);
  examples::check_page_option(options.page, options.trains());
  if (options.trains()) {
    examples::check_training_options(app, options.training);
    examples::check_output_options(app, options.outputs, options.training.eval_every > 0);
  }
}

const std::string reading = "Using the model", learning = "Fine-tuning";

void add_use_options(CLI::App& app, Gpt2Options& options) {
  add_writing_options(
      app, options.writing, reading,
      {.prompt = "Continue this text (default: start at the separator between texts,\nif no other task is "
                 "given)",
       .length = "Number of tokens to generate (default 100)",
       .unit = "token"});
  const auto add_file = [&](const char* name, std::string& file, const char* text) {
    app.add_option(name, file, text)->type_name("FILE")->check(examples::some_path())->group(reading);
  };
  add_file("--score", options.score,
           "Print the perplexity of this text, each token predicted from the\n"
           "previous ones, at least half a context where available");
  add_file("--tokens", options.tokens, "Print the token ids of this text");
  examples::add_choice<bool>(app, "--weights", options.bf16, {{"float", false}, {"bf16", true}},
                             "Store the weights in float (default), or rounded to bfloat16 in\n"
                             "half the memory")
      ->group(reading);
  app.add_option("--adapter", options.adapter, "Use the low-rank updates saved in this folder by --lora")
      ->type_name("DIR")
      ->check(examples::some_path())
      ->group(reading);
  examples::add_explain_options(app, options.explain, reading, examples::some_text());
  examples::add_page_option(app, options.page, reading,
                            "Long texts\n"
                            "are truncated to the context and the next token",
                            examples::some_text());
}

void add_fine_tune_options(CLI::App& app, Gpt2Options& options, Given& given) {
  using O = FineTuneOptions;
  const auto add = [&](const char* name, auto member, const char* type, const CLI::Validator& check, const char* text) {
    given.fine_tune.add(app, name, member, type, check, text)->group(learning);
  };
  add("--train", &O::data, "FILE", examples::some_path(),
      "Fine-tune on this text; its last tenth is held out for validation");
  add("--context", &O::context, "N", whole_number(1, longest_context),
      "Tokens per training sequence (default: the model's context, at\nmost 256)");
  add("--dropout", &O::dropout, "P", number(0, 0.99),
      "Dropout probability in training (default 0, regardless of the\nconfiguration)");
  add("--lora", &O::lora, "RANK", whole_number(1, 1'000'000),
      "Train only low-rank updates of this rank to the attention\nprojections (LoRA)");
  add("--lora-alpha", &O::lora_alpha, "A", number(1e-9, 1e9),
      "Scale the updates by A / RANK (default A: twice the rank)");
  given.fine_tune
      .add_flag(app, "--recompute", &O::recompute,
                "Store only each block's input and recompute the rest in the\n"
                "backward pass: less memory, more time, the same result")
      ->group(learning);
  given.outputs
      .add(app, "--save", &examples::OutputOptions::save, "DIR", examples::some_path(),
           "Save the model here after training, also after Ctrl-C; with --lora,\nonly the updates")
      ->group(learning);
  app.add_flag("--merge", options.merge,
               "Save the weights with the updates merged instead; also with\n--adapter, without training")
      ->group(learning);
}

}  // namespace

void add_options(CLI::App& app, Gpt2Options& options) {
  app.name("gpt2");
  app.description(description);
  app.footer(footer);
  app.get_formatter()->column_width(26);

  const auto given = std::make_shared<Given>();
  app.add_option("DIR", options.folder, "Folder of the model")->required()->check(examples::some_path());
  add_use_options(app, options);
  app.add_option("--train-tokenizer", options.train_tokenizer,
                 "Train a tokenizer for texts like this one and write vocab.json and\nmerges.txt to DIR")
      ->type_name("FILE")
      ->check(examples::some_path())
      ->group("Training a tokenizer");
  app.add_option("--vocabulary", options.vocabulary, "Vocabulary size: 256 bytes, merges, and the separator of texts")
      ->type_name("N")
      ->check(whole_number(257, 1'000'000))
      ->group("Training a tokenizer");
  add_fine_tune_options(app, options, *given);
  examples::add_training_options(app, given->training, given->seed);
  examples::add_validation_options(app, given->training);
  examples::add_ranks_options(app, options.divide_state);
  examples::add_output_options(app, given->outputs, options.resume);
  app.callback([&app, &options, given] {
    if (options.resume.empty())
      complete(options, *given);
    else
      resume(app, options, *given);
    options.writes = writes(options);
    check_combinations(app, options, *given);
    examples::require_utf8_in_saved(app, options.outputs, {{"--train", options.fine_tune.data}});
  });
}
