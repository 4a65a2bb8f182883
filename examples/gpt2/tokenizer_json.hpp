/// The one file that newer models have in place of vocab.json and merges.txt.
#pragma once

#include <filesystem>

#include "tokenizer_parts.hpp"

/// Reads tokenizer.json where it says a byte-level BPE with GPT-2's or Llama 3's expression, as Hugging Face's
/// tokenizers write it, and of SmolLM's digits. Throws std::runtime_error, naming the file and the member, for all else
/// that it asks for.
TokenizerParts read_tokenizer_json(const std::filesystem::path& file);
