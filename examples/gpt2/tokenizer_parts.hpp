/// The parts of a tokenizer, as in Hugging Face's files.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "merges.hpp"
#include "pre_tokenizer.hpp"

struct TokenizerParts {
  std::vector<std::string> tokens;                       ///< the bytes of each id
  std::array<TokenId, 256> bytes;                        ///< the token of each byte
  std::vector<Merge> merges;                             ///< by rank
  std::vector<TokenId> special;                          ///< spelled literally in texts and never split: <|endoftext|>
  std::vector<TokenId> before;                           ///< put before a standalone text: Llama 3's <|begin_of_text|>
  std::string expression = kGpt2Expression;              ///< splits texts into pieces before merging
  std::unordered_map<std::string, TokenId> whole_words;  ///< pieces kept whole; in Llama 3 all tokens

  static constexpr const char* end_of_text = "<|endoftext|>";
};

/// A token for each byte, in the order of their characters, like the first 256 of GPT-2's.
TokenizerParts byte_tokens();
