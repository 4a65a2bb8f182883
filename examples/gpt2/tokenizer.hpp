/// The tokenizer of GPT-2 (Radford et al. 2019): byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909) of bytes.
/// It can encode any text and decodes losslessly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "merges.hpp"
#include "pre_tokenizer.hpp"
#include "tokenizer_parts.hpp"

/// Encoding of <|endoftext|> and other special tokens spelled in a text. as_text: like ordinary text, for user input.
/// as_tokens: as their own ids, for files with separated texts, as in Hugging Face's libraries.
enum class Special { as_text, as_tokens };

/// Immutable after construction, so threads may share it.
class Tokenizer {
 public:
  /// Reads Hugging Face's tokenizer.json or, without one, vocab.json and merges.txt. Throws std::runtime_error, naming
  /// the file in one line, for unsupported or invalid files: see tokenizer_files.hpp.
  static Tokenizer read(const std::filesystem::path& folder);

  explicit Tokenizer(TokenizerParts parts);

  /// The ids of a text of arbitrary bytes. Throws std::invalid_argument for 2 GB or more.
  std::vector<std::int64_t> encode(std::string_view text, Special special = Special::as_text) const;

  /// The ids of a standalone text, after the tokens tokenizer.json puts before texts. GPT-2 has none.
  std::vector<std::int64_t> encode_alone(std::string_view text, Special special = Special::as_text) const;

  /// The bytes of the tokens. Throws std::out_of_range for an invalid id.
  std::string decode(std::span<const std::int64_t> ids) const;
  const std::string& bytes(std::int64_t id) const;

  /// The number of ids.
  std::size_t size() const { return parts_.tokens.size(); }

  /// The id of <|endoftext|>, the separator of texts, if it is a special token.
  std::optional<std::int64_t> end_of_text() const;

  /// Writes vocab.json and merges.txt for read() and Hugging Face's GPT2Tokenizer. Throws like save_tokenizer_parts.
  void save(const std::filesystem::path& folder) const;

 private:
  struct Found {
    std::size_t place;
    TokenId token;
  };
  std::optional<Found> find_special(std::string_view text) const;
  std::vector<TokenId> tokens_of(std::string_view piece) const;

  TokenizerParts parts_;
  PreTokenizer pre_tokenizer_;
  Merges merges_;
  std::vector<TokenId> special_;  // longest first
  std::string special_begins_;    // their first bytes
};
