/// Fuzzes the programs' command lines. The first line is the program's name, the others are its arguments.
#include "../../examples/gpt2/options.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../examples/common/program.hpp"
#include "../../examples/language_model/options.hpp"
#include "../../examples/pronounce/options.hpp"
#include "../../examples/text_classifier/options.hpp"
#include "fuzz.hpp"

namespace {

// Parses the arguments, in CLI11's order: the last one first.
template <class ProgramOptions> void parse(const std::vector<std::string>& arguments) {
  CLI::App app;
  ProgramOptions options;
  add_options(app, options);
  const std::string message = fuzz::program_refusal([&] {
    try {
      app.parse(std::vector<std::string>(arguments));
    } catch (const CLI::CallForHelp&) {
      fuzz::expect(!app.help().empty(), "no help");
    } catch (const CLI::ParseError& error) {  // CLI11 throws no other
      throw std::runtime_error(error.what());
    }
  });
  if (!message.empty()) return;
  const tapegrad::Schedule rate = examples::schedule_of(options.training);
  for (const std::size_t step : {std::size_t{0}, options.training.warmup, options.training.steps})
    fuzz::expect(std::isfinite(rate(step)), "a learning rate that is not finite");
}

}  // namespace

void fuzz::fuzz_one(std::string_view input) {
  const std::string_view program = take_until(input, '\n');
  std::vector<std::string> arguments;
  while (!input.empty()) arguments.emplace_back(take_until(input, '\n'));
  std::ranges::reverse(arguments);
  if (program == "text_classifier") parse<Options>(arguments);
  if (program == "language_model") parse<LanguageModelOptions>(arguments);
  if (program == "gpt2") parse<Gpt2Options>(arguments);
  if (program == "pronounce") parse<pronounce::PronounceOptions>(arguments);
}

std::vector<std::string> fuzz::seeds() {
  const std::vector<std::string> of_any{
      "--help",
      "--steps\n10\n--batch-size\n4\n--lr\n0.5\n--decay\ncosine\n--warmup\n3\n--seed\n1",
      "--data\nreviews.txt\n--encoding\nlatin1\n--optimizer\nadamw\n--weight-decay\n0.1",
      "--load\na.safetensors\n--explain\na text\n--explain-to\nmap",
      "--page\na.html\ntext\n--width=16\n--heads=4",
      "--checkpoint\nrun\n--checkpoint-every\n5\n--log\na.csv\n--plot\na.png\n--best\nb",
      "--resume\n/proc/self/cmdline\n--steps\n99"};
  std::vector<std::string> inputs{
      "text_classifier\n--train\na\n--test\nb\n--tokens\ncharacters\n--validation\n0.1\n--patience\n3",
      "text_classifier\n--languages\nenglish\nfrench\n--words\n100\n--folds\n10\n--pairs\nyes\n--momentum\n1e-1",
      "text_classifier\n--data\nrandom",
      "language_model\n--data\nrandom",
      "language_model\n--language\nenglish\n--layers\n2\n--context\n8\n--tie\nyes\n--norm\nno\n--dropout\n0.25\n--top-"
      "k\n3",
      "gpt2\ngpt2\n--train\na.txt\n--lora\n8\n--lora-alpha=16\n--merge\n--save\nmine\n--dropout\n0.1\n--recompute",
      "gpt2\ngpt2\n--score\na\n--weights\nbf16\n--adapter\nb\n--prompt\n\n--length\n0\n--temperature\n0\n--top-p\n1",
      "gpt2\ngpt2\n--train-tokenizer\na.txt\n--vocabulary\n300",
      "gpt2\ngpt2\n--resume\n/proc/self/cmdline\n--steps\n99",
      "pronounce\n--data\na.tsv\n--source\nwords\n--target\ncharacters\n--beams\n4\n--pronounce\na\nb"};
  for (const std::string program : {"text_classifier", "language_model", "pronounce"})
    for (const std::string& arguments : of_any) inputs.push_back(program + '\n' + arguments);
  return inputs;
}
