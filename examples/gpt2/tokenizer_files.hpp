/// A tokenizer's files in a folder, as Hugging Face's libraries have them.
#pragma once

#include <filesystem>

#include "tokenizer_parts.hpp"

/// Reads tokenizer.json, which says all of it, or where it is missing vocab.json and merges.txt, of which <|endoftext|>
/// is special. Throws std::runtime_error in one line that names the file, for what does not fit together, and for all
/// that tokenizer.json asks for and that a byte-level BPE of GPT-2's, Llama 3's or SmolLM's kind is not.
TokenizerParts read_tokenizer_parts(const std::filesystem::path& folder);

/// Writes vocab.json and merges.txt into the folder, which is made where it is missing. Throws std::invalid_argument
/// for parts that these two files cannot say, and std::runtime_error for what cannot be written.
void save_tokenizer_parts(const TokenizerParts& parts, const std::filesystem::path& folder);
