/// What a tokenizer is made of, as the files of Hugging Face's libraries have it.
#pragma once

#include <array>
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
  std::vector<TokenId> before;               ///< put before a text that stands alone: Llama 3's <|begin_of_text|>
  std::string expression = kGpt2Expression;  ///< that cuts texts into the pieces in which tokens are merged
  std::unordered_map<std::string, TokenId> whole_words;  ///< pieces that are tokens whatever the merges: of Llama 3 all

  static constexpr const char* end_of_text = "<|endoftext|>";
};

/// The tokens of the bytes alone, in the order of the characters that spell them: the first 256 of GPT-2's.
TokenizerParts byte_tokens();
