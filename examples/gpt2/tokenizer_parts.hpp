/// What a tokenizer is made of, as the files of Hugging Face's libraries have it.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "merges.hpp"
#include "pre_tokenizer.hpp"

struct TokenizerParts {
  std::vector<std::string> tokens;           ///< the bytes of each id
  std::array<TokenId, 256> bytes;            ///< the token of each byte
  std::vector<Merge> merges;                 ///< by rank
  std::vector<TokenId> special;              ///< stand in texts as they are spelt, and are never cut: <|endoftext|>
  std::string expression = kGpt2Expression;  ///< that cuts texts into the pieces in which tokens are merged
  std::unordered_map<std::string, TokenId> whole_words;  ///< pieces that are tokens whatever the merges: of Llama 3 all

  static constexpr const char* end_of_text = "<|endoftext|>";
};

/// The tokens of the bytes alone, in the order of the characters that spell them: the first 256 of GPT-2's.
TokenizerParts byte_tokens();

/// Reads vocab.json and merges.txt, of which <|endoftext|> is special, or where both are missing tokenizer.json.
/// Throws std::runtime_error in one line that names the file, for what does not fit together, and for all that
/// tokenizer.json asks for and that a byte-level BPE of GPT-2's or Llama 3's kind is not.
TokenizerParts read_tokenizer_parts(const std::filesystem::path& folder);

/// Writes vocab.json and merges.txt into the folder, which is made where it is missing. Throws std::invalid_argument
/// for parts that these two files cannot say, and std::runtime_error for what cannot be written.
void save_tokenizer_parts(const TokenizerParts& parts, const std::filesystem::path& folder);
