/// Splits text into pieces before byte-pair encoding: words with their leading space, numbers, punctuation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct URegularExpression;  // of ICU

/// The supported expressions, verified to give the same pieces as in training, as spelled in tokenizer.json: GPT-2's
/// (Radford et al. 2019), Llama 3's, and GPT-2's after a step to split digits, used by SmolLM.
extern const std::string kGpt2Expression, kLlama3Expression, kDigitsExpression;

/// Splits text by a regular expression. \s is Unicode's White_Space, \p{L} its letters and \p{N} its numbers, in ICU's
/// version of Unicode. Versions differ only in characters missing from the older one.
class PreTokenizer {
 public:
  /// Throws std::invalid_argument for any other expression.
  explicit PreTokenizer(const std::string& expression = kGpt2Expression);

  /// Calls `take` with each piece in order. The pieces cover the text. An invalid UTF-8 byte counts as a character
  /// other than a letter, number or space. Runs in linear time. Throws std::invalid_argument for a text of 2 GB or
  /// more, before any call.
  void cut(std::string_view text, const std::function<void(std::string_view)>& take) const;

 private:
  std::shared_ptr<const URegularExpression> expression_;
};
