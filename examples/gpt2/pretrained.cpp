#include "pretrained.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "files.hpp"
#include "weights.hpp"

namespace fs = std::filesystem;

Description read_description(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw std::runtime_error(folder.string() +
                             ": expected a folder with config.json, model.safetensors and a "
                             "tokenizer, given none");
  Config config = read_config(folder);
  Tokenizer tokenizer = Tokenizer::read(folder);
  if (tokenizer.size() != config.vocabulary) {
    const bool in_one_file = fs::exists(folder / "tokenizer.json");
    throw std::runtime_error((folder / (in_one_file ? "tokenizer.json" : "vocab.json")).string() + ": expected " +
                             std::to_string(config.vocabulary) + " tokens, as vocab_size of config.json says, given " +
                             std::to_string(tokenizer.size()));
  }
  return {std::move(config), std::move(tokenizer)};
}

Pretrained with_weights(Description description, const fs::path& folder) {
  LanguageModel<> model = load_model(description.config, folder);
  return {std::move(description.config), std::move(description.tokenizer), std::move(model)};
}

namespace {

/// The files of a folder that tell of its tokenizer and of how it is used, as Hugging Face's libraries name them.
constexpr std::array files_beside{"vocab.json",          "merges.txt",
                                  "tokenizer.json",      "tokenizer_config.json",
                                  "added_tokens.json",   "special_tokens_map.json",
                                  "chat_template.jinja", "generation_config.json"};

}  // namespace

std::vector<std::string> model_files() {
  std::vector<std::string> names(files_beside.begin(), files_beside.end());
  names.insert(names.end(), {"config.json", "model.safetensors"});
  return names;
}

void save_pretrained(const Pretrained& pretrained, const fs::path& from, const fs::path& to) {
  make_folder(to);
  save_weights(pretrained.model, pretrained.config, to);
  for (const char* name : files_beside)
    if (fs::exists(from / name)) tapegrad::save_text(read_file(from / name), to / name);
  nlohmann::json config = pretrained.config.json;
  config.erase("dtype");  // as newer files call it
  config["torch_dtype"] = "float32";
  tapegrad::save_text(config.dump(2) + '\n', to / "config.json");
}
