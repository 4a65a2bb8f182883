/// Runs, scores and fine-tunes GPT-2 and similar models in Hugging Face's format.
/// `gpt2 --help` lists the options.

#include <tapegrad/tapegrad.hpp>

#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "../common/interrupt.hpp"
#include "../common/printable.hpp"
#include "../common/program.hpp"
#include "../common/progress.hpp"
#include "../common/ranks.hpp"
#include "adapter.hpp"
#include "file_names.hpp"
#include "files.hpp"
#include "fine_tune.hpp"
#include "options.hpp"
#include "prepare_files.hpp"
#include "pretrained.hpp"
#include "train_tokenizer.hpp"
#include "writing.hpp"

namespace fs = std::filesystem;
namespace tg = tapegrad;

namespace {

int make_tokenizer(const Gpt2Options& options) {
  check_output_folder(options.folder, {});
  std::error_code none;
  for (const char* name : {file_names::vocabulary, file_names::tokenizer})
    if (fs::exists(fs::path(options.folder) / name, none))
      throw std::runtime_error(options.folder + ": expected a folder without a tokenizer, got one with " + name);
  const Tokenizer tokenizer = [&] {
    const std::string text = read_file(options.train_tokenizer);
    try {
      return train_tokenizer(text, options.vocabulary);
    } catch (const std::invalid_argument& error) {
      throw std::runtime_error(options.train_tokenizer + ": " + error.what());
    }
  }();
  examples::write_whole([&] { tokenizer.save(options.folder); });
  std::cout << examples::with_commas(tokenizer.size()) << " tokens: " << examples::printable(options.folder)
            << "/vocab.json and merges.txt\n";
  return 0;
}

int use_model(const Gpt2Options& options) {
  Description description = read_description(options.folder);
  check_texts(description, options);
  Pretrained pretrained = with_weights(std::move(description), options.folder);
  if (!options.adapter.empty()) load_adapter(pretrained, options.adapter);
  const int status = options.trains() ? fine_tune(pretrained, options) : 0;
  tg::eval(pretrained.model);
  if (!options.trains() && !options.outputs.save.empty())
    examples::write_whole([&] { save_result(pretrained, options, options.outputs.save); });
  if (options.bf16) tg::hold_in_bfloat16(pretrained.model);
  if (!options.score.empty()) print_score(pretrained, options.folder, options.score);
  if (!examples::is_first_rank()) return status;
  if (const auto& [file, text] = options.page; text)
    show_step(pretrained, file, pretrained.tokenizer.encode_alone(*text), examples::in_quotes(*text));
  if (options.explain.wanted) explain(pretrained, options.explain);
  if (options.writes) write_on(pretrained, options.writing, options.fine_tune.seed);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  Gpt2Options options;
  add_options(app, options);
  return examples::run_program(app, argc, argv, [&] {
    tg::manual_seed(options.fine_tune.seed);
    if (!examples::is_first_rank()) examples::write_nothing(options.outputs, options.page);
    prepare_files(options);
    if (!options.train_tokenizer.empty()) return examples::is_first_rank() ? make_tokenizer(options) : 0;
    if (!options.tokens.empty()) {
      print_tokens(Tokenizer::read(options.folder), options.tokens);
      return 0;
    }
    return use_model(options);
  });
}
