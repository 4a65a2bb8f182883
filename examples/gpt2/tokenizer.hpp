/// The tokenizer of GPT-2 (Radford et al. 2019): byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909) of bytes,
/// so that every text has ids, and they give back all of its bytes.
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

/// What becomes of <|endoftext|> and other special tokens where a text spells them: ids like any other text's, as for
/// what somebody wrote, or their own ids, as for files in which they part the texts, and as in Hugging Face's
/// libraries.
enum class Special { as_text, as_tokens };

/// Unchanged once it is made: threads may share it.
class Tokenizer {
 public:
  /// Reads tokenizer.json in the folder, or where it has none vocab.json and merges.txt, as Hugging Face has them.
  /// Throws std::runtime_error, in one line that names the file, for what cannot be used: see tokenizer_files.hpp.
  static Tokenizer read(const std::filesystem::path& folder);

  explicit Tokenizer(TokenizerParts parts);

  /// The ids of a text, which may be any bytes. Throws std::invalid_argument for one of 2 GB or more.
  std::vector<std::int64_t> encode(std::string_view text, Special special = Special::as_text) const;

  /// The ids of a text that stands alone: behind those tokens that tokenizer.json puts before one. GPT-2 has none.
  std::vector<std::int64_t> encode_alone(std::string_view text, Special special = Special::as_text) const;

  /// The bytes of the tokens. Throws std::out_of_range for an id that there is not.
  std::string decode(std::span<const std::int64_t> ids) const;
  const std::string& bytes(std::int64_t id) const;

  /// How many ids there are.
  std::size_t size() const { return parts_.tokens.size(); }

  /// The id of <|endoftext|>, which stands between texts; none where it is no special token.
  std::optional<std::int64_t> end_of_text() const;

  /// Writes vocab.json and merges.txt into the folder, from which read() and Hugging Face's GPT2Tokenizer have the same
  /// tokenizer. Throws as save_tokenizer_parts does.
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
  std::vector<TokenId> special_;  // the longest first
  std::string special_begins_;    // the bytes that they begin with
};
