/// A pretrained model in a folder: weights, configuration and tokenizer.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "../gpt/model.hpp"
#include "config.hpp"
#include "tokenizer.hpp"

/// Contents of files by name.
using Files = std::map<std::string, std::string>;

/// A pretrained model without its weights, which take longer to read.
struct Description {
  Config config;
  Tokenizer tokenizer;
  Files other_files;  ///< original files of the tokenizer and its settings
};

/// Reads a folder and checks it for consistency. Throws std::runtime_error, naming the file, if it is invalid.
Description read_description(const std::filesystem::path& folder);

struct Pretrained {
  Config config;
  Tokenizer tokenizer;
  LanguageModel<> model;
  Files other_files = {};
};

/// Adds the weights. Throws like load_model.
Pretrained with_weights(Description description, const std::filesystem::path& folder);

/// The names of all files read from or copied between folders.
std::vector<std::string> model_files();

/// Writes a folder readable by Hugging Face's libraries and this program: the weights, the configuration and the
/// original tokenizer files. Replaces another model like replace_model. Throws std::runtime_error if a file cannot be
/// written.
void save_pretrained(const Pretrained& pretrained, const std::filesystem::path& folder);
