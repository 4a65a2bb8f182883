/// Cutting a text into the pieces within which tokens are made: words with the space before them, numbers, signs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct URegularExpression;  // ICU's

/// The expressions whose pieces are known to be the same here as where models are trained, as tokenizer.json spells
/// them: GPT-2's (Radford et al. 2019) and Llama 3's; and GPT-2's behind a step that parts digits, as SmolLM has it.
extern const std::string kGpt2Expression, kLlama3Expression, kDigitsExpression;

/// Cuts texts by a regular expression, of which \s is Unicode's White_Space, \p{L} its letters and \p{N} its numbers.
/// The classes are those of ICU's version of Unicode: versions differ in characters that the older one lacks.
class PreTokenizer {
 public:
  /// Throws std::invalid_argument for an expression that is none of the above.
  explicit PreTokenizer(const std::string& expression = kGpt2Expression);

  /// Calls `take` with the pieces of the text in their order, which are all of it. A byte that is not UTF-8 counts as a
  /// character that is neither letter nor number nor space. The time is linear in the text's length.
  /// Throws std::invalid_argument for a text of 2 GB or more, before any piece.
  void cut(std::string_view text, const std::function<void(std::string_view)>& take) const;

 private:
  std::shared_ptr<const URegularExpression> expression_;
};
