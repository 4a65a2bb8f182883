#include "prepare_files.hpp"

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "../common/program.hpp"
#include "adapter.hpp"
#include "file_names.hpp"
#include "files.hpp"
#include "pretrained.hpp"

namespace fs = std::filesystem;

namespace {

bool path_exists(const fs::path& file) {
  std::error_code none;
  return fs::exists(file, none);
}

std::vector<std::string> in_folder(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) files.push_back((fs::path(folder) / name).string());
  return files;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// The input files: texts, the model, its adapter, and the run to resume unless its checkpoint is also an output.
std::vector<std::string> checked_inputs(const Gpt2Options& options) {
  std::vector<std::string> inputs{options.score, options.fine_tune.data, options.tokens, options.train_tokenizer};
  if (!options.adapter.empty()) append(inputs, in_folder(options.adapter, adapter_files()));
  for (const std::string& file : inputs) check_input_file(file);
  append(inputs, in_folder(options.folder, model_files()));
  if (options.resume != options.outputs.checkpoint) inputs.push_back(options.resume);
  return inputs;
}

/// The files an output folder must not contain: Hugging Face's libraries would apply an adapter to the model next to
/// it, or use a different tokenizer.
std::vector<std::string> foreign_files(const Gpt2Options& options) {
  if (options.saves_updates()) return {file_names::config, file_names::weights};
  std::vector<std::string> foreign = adapter_files();
  for (const std::string& name : model_files())
    if (!path_exists(fs::path(options.folder) / name)) foreign.push_back(name);
  return foreign;
}

void check_saved_folder(const std::string& folder, const Gpt2Options& options) {
  for (const std::string& read : {options.folder, options.adapter}) check_output_folder(folder, read);
  for (const std::string& name : foreign_files(options))
    if (path_exists(fs::path(folder) / name))
      throw std::runtime_error(folder + ": expected an output folder without " + name + ", which is not part of " +
                               (options.saves_updates() ? "the adapter" : "the model") + "; use another folder");
}

}  // namespace

void prepare_files(const Gpt2Options& options) {
  const examples::OutputOptions& files = options.outputs;
  const std::vector<std::string> inputs = checked_inputs(options), folders{files.save, files.best};
  std::vector<std::string> outputs = examples::attention_files(options.explain);
  append(outputs, {files.checkpoint, files.log, files.plot, options.page.file});
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    check_saved_folder(folder, options);
    if (path_exists(folder))
      append(outputs, in_folder(folder, options.saves_updates() ? adapter_files() : model_files()));
  }
  examples::prepare_outputs(outputs, inputs, folders);
}
