/// Runs, scores and fine-tunes GPT-2 and models of its kind, from folders as Hugging Face publishes them.
/// `gpt2 --help` tells what to ask for.

#include <tapegrad/tapegrad.hpp>

#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/printable.hpp"
#include "../common/program.hpp"
#include "../common/progress.hpp"
#include "../common/ranks.hpp"
#include "adapter.hpp"
#include "files.hpp"
#include "fine_tune.hpp"
#include "options.hpp"
#include "pretrained.hpp"
#include "train_tokenizer.hpp"
#include "writing.hpp"

namespace tg = tapegrad;

namespace {

void check_files(const Options& options) {
  std::vector<std::string> outputs = examples::attention_files(options.explain);
  const examples::OutputOptions& kept = options.outputs;
  for (const std::string& file : {kept.checkpoint, kept.log, kept.plot, options.page.file}) outputs.push_back(file);
  std::vector<std::string> inputs{options.score, options.fine_tune.data};
  if (options.resume != kept.checkpoint) inputs.push_back(options.resume);
  if (options.trains() || options.explain.wanted || !options.page.file.empty()) examples::outlive_reader();
  examples::check_outputs(outputs, inputs);
  for (const std::string& folder : {kept.save, kept.best}) check_output_folder(folder, options.folder);
}

/// For a rank that is not the first: it takes part in what is kept, and writes none of it.
void write_nothing(Options& options) {
  examples::OutputOptions& outputs = options.outputs;
  for (std::string* const file : {&outputs.save, &outputs.best, &outputs.log, &outputs.plot, &options.page.file})
    file->clear();
}

int make_tokenizer(const Options& options) {
  for (const char* name : {"vocab.json", "merges.txt", "tokenizer.json"})
    if (std::filesystem::exists(std::filesystem::path(options.folder) / name))
      throw std::runtime_error(options.folder + ": expected a folder without a tokenizer, given one with " + name);
  const Tokenizer tokenizer = train_tokenizer(read_bytes(options.train_tokenizer), options.vocabulary);
  tokenizer.save(options.folder);
  std::cout << examples::with_commas(tokenizer.size()) << " tokens: " << examples::printable(options.folder)
            << "/vocab.json and merges.txt\n";
  return 0;
}

int use_model(const Options& options) {
  Description description = read_description(options.folder);
  check_texts(description, options);
  Pretrained pretrained = with_weights(std::move(description), options.folder);
  if (!options.adapter.empty()) load_adapter(pretrained, options.adapter);
  const int status = options.trains() ? fine_tune(pretrained, options) : 0;
  tg::eval(pretrained.model);
  if (options.bf16) tg::hold_in_bfloat16(pretrained.model);
  if (!options.score.empty()) print_score(pretrained, options.score);
  if (!examples::is_first_rank()) return status;
  if (options.page.text) show_step(pretrained, options.page);
  if (options.explain.wanted) explain(pretrained, options.explain);
  if (options.writes()) write_on(pretrained, options.writing, options.fine_tune.seed);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  Options options;
  add_options(app, options);
  return examples::run_program(app, argc, argv, [&] {
    tg::manual_seed(options.fine_tune.seed);
    if (!examples::is_first_rank()) write_nothing(options);
    check_files(options);
    if (!options.train_tokenizer.empty()) return make_tokenizer(options);
    if (!options.tokens.empty()) {
      print_tokens(Tokenizer::read(options.folder), options.tokens);
      return 0;
    }
    return use_model(options);
  });
}
