#include "pretrained.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "file_names.hpp"
#include "files.hpp"
#include "weights.hpp"

namespace fs = std::filesystem;

namespace {

/// The files with the tokenizer and its settings.
constexpr std::array tokenizer_names{file_names::vocabulary,  file_names::merges,      file_names::tokenizer,
                                     "tokenizer_config.json", "added_tokens.json",     "special_tokens_map.json",
                                     "chat_template.jinja",   "generation_config.json"};

Files read_tokenizer_files(const fs::path& folder) {
  Files files;
  std::error_code none;
  for (const char* name : tokenizer_names)
    if (fs::exists(folder / name, none)) files[name] = read_file(folder / name);
  return files;
}

}  // namespace

Description read_description(const fs::path& folder) {
  std::error_code none;
  if (!fs::is_directory(folder, none))
    throw std::runtime_error(folder.string() +
                             ": expected a folder with config.json, model.safetensors and a "
                             "tokenizer, got no folder");
  Config config = read_config(folder);
  Tokenizer tokenizer = Tokenizer::read(folder);
  Files other_files = read_tokenizer_files(folder);
  if (tokenizer.size() != config.vocabulary) {
    const char* name = other_files.contains(file_names::tokenizer) ? file_names::tokenizer : file_names::vocabulary;
    throw std::runtime_error((folder / name).string() + ": expected " + std::to_string(config.vocabulary) +
                             " tokens, the vocab_size in config.json, got " + std::to_string(tokenizer.size()));
  }
  return {std::move(config), std::move(tokenizer), std::move(other_files)};
}

Pretrained with_weights(Description description, const fs::path& folder) {
  LanguageModel<> model = load_model(description.config, folder);
  return {std::move(description.config), std::move(description.tokenizer), std::move(model),
          std::move(description.other_files)};
}

std::vector<std::string> model_files() {
  std::vector<std::string> names(tokenizer_names.begin(), tokenizer_names.end());
  names.insert(names.end(), {file_names::config, file_names::weights});
  return names;
}

void save_pretrained(const Pretrained& pretrained, const fs::path& folder) {
  nlohmann::json config = pretrained.config.json;
  config.erase("dtype");  // newer files' name of torch_dtype
  config["torch_dtype"] = "float32";
  replace_model(
      folder, file_names::config, config.dump(2) + '\n',
      [&] { save_weights(pretrained.model, pretrained.config, folder); }, pretrained.other_files);
}
