/// A model as a folder has it: weights, what they are of, and the tokenizer.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "../gpt/model.hpp"
#include "config.hpp"
#include "tokenizer.hpp"

/// The bytes of files, by their names in a folder.
using Files = std::map<std::string, std::string>;

/// All of it but the weights, which take longer to read.
struct Description {
  Config config;
  Tokenizer tokenizer;
  Files beside;  ///< those that tell of the tokenizer and of how it is used, as they were read
};

/// Reads what fits together. Throws std::runtime_error, naming the file, for a folder without it.
Description read_description(const std::filesystem::path& folder);

struct Pretrained {
  Config config;
  Tokenizer tokenizer;
  LanguageModel<> model;
  Files beside = {};
};

/// Reads the weights as well. Throws as load_model does.
Pretrained with_weights(Description description, const std::filesystem::path& folder);

/// The names of the files that a folder may have and that are read or copied.
std::vector<std::string> model_files();

/// Writes a folder that Hugging Face's libraries and this program read: the weights, the configuration, and the files
/// beside them as they were read. The weights come first, for which there may be too little room. Throws
/// std::runtime_error for what cannot be written.
void save_pretrained(const Pretrained& pretrained, const std::filesystem::path& folder);
