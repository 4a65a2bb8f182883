/// Reads tokenizer.json, used by newer models instead of vocab.json and merges.txt.
#pragma once

#include <filesystem>

#include "tokenizer_parts.hpp"

/// Supports a byte-level BPE with GPT-2's or Llama 3's expression, as written by Hugging Face's tokenizers, and
/// SmolLM's splitting of digits. Throws std::runtime_error, naming the file and the member, for anything else.
TokenizerParts read_tokenizer_json(const std::filesystem::path& file);
