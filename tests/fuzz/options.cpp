/// Fuzzes the command line of a program, given by the options.hpp included. Each argument is a line.
#include "options.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../examples/common/program.hpp"
#include "program_refusal.hpp"

// The program's type of options.
template <class Options> Options defaults_of(void (*)(CLI::App&, Options&)) { return {}; }

void fuzz::fuzz_one(std::string_view input) {
  std::vector<std::string> arguments;
  while (!input.empty()) arguments.emplace_back(take_until(input, '\n'));
  std::ranges::reverse(arguments);  // CLI11's order

  CLI::App app;
  auto options = defaults_of(add_options);
  add_options(app, options);
  const std::string message = program_refusal([&] {
    try {
      app.parse(arguments);
    } catch (const CLI::CallForHelp&) {
      expect(!app.help().empty(), "no help");
    } catch (const CLI::ParseError& error) {  // CLI11 throws no other
      throw std::runtime_error(error.what());
    }
  });
  if (!message.empty()) return;
  const tapegrad::Schedule rate = examples::schedule_of(options.training);
  for (const std::size_t step : {std::size_t{0}, options.training.warmup, options.training.steps})
    expect(std::isfinite(rate(step)), "a learning rate that is not finite");
}

std::vector<std::string> fuzz::seeds() {
  return {"--help",
          "--steps\n10\n--batch-size\n4\n--lr\n0.5\n--decay\ncosine\n--warmup\n3\n--seed\n1",
          "--data\nrandom",
          "--data\nreviews.txt\n--encoding\nlatin1\n--optimizer\nadamw\n--weight-decay\n0.1",
          "--load\na.safetensors\n--explain\na text\n--explain-to\nmap",
          "--page\na.html\ntext\n--width=16\n--heads=4",
          "--train\na\n--test\nb\n--tokens\ncharacters\n--validation\n0.1\n--patience\n3",
          "--checkpoint\nrun\n--checkpoint-every\n5\n--log\na.csv\n--plot\na.png\n--best\nb",
          "--languages\nenglish\nfrench\n--words\n100\n--folds\n10\n--pairs\nyes\n--momentum\n1e-1",
          "--language\nenglish\n--layers\n2\n--context\n8\n--tie\nyes\n--norm\nno\n--dropout\n0.25\n--top-k\n3",
          "gpt2\n--train\na.txt\n--lora\n8\n--lora-alpha=16\n--merge\n--save\nmine\n--dropout\n0.1\n--recompute",
          "gpt2\n--score\na\n--weights\nbf16\n--adapter\nb\n--prompt\n\n--length\n0\n--temperature\n0\n--top-p\n1",
          "gpt2\n--train-tokenizer\na.txt\n--vocabulary\n300",
          "--resume\n/proc/self/cmdline\n--steps\n99",
          "gpt2\n--resume\n/proc/self/cmdline\n--steps\n99"};
}
