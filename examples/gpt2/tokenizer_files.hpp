/// Reads and writes Hugging Face's tokenizer files.
#pragma once

#include <filesystem>

#include "tokenizer_parts.hpp"

/// Reads tokenizer.json or, without one, vocab.json and merges.txt, with <|endoftext|> as special token. Throws
/// std::runtime_error, naming the file in one line, for inconsistent files and for anything in tokenizer.json beyond a
/// byte-level BPE like GPT-2's, Llama 3's or SmolLM's.
TokenizerParts read_tokenizer_parts(const std::filesystem::path& folder);

/// Writes vocab.json and merges.txt into the folder; creates it if missing. Throws std::invalid_argument for parts not
/// expressible in these files, and std::runtime_error if they cannot be written.
void save_tokenizer_parts(const TokenizerParts& parts, const std::filesystem::path& folder);
