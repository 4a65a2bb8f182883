#include "pre_tokenizer.hpp"

#include <unicode/unistr.h>
#include <unicode/uregex.h>
#include <unicode/utext.h>

#include <cstdint>
#include <limits>
#include <stdexcept>

#include "../common/printable.hpp"

const std::string kGpt2Expression = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string kLlama3Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// The digits step splits at each \p{N} first, so the preceding text ends there: spaces before a digit are a piece.
const std::string kDigitsExpression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+)";

namespace {

using Expression = std::unique_ptr<URegularExpression, decltype(&uregex_close)>;

void expect_success(UErrorCode error) {
  if (U_FAILURE(error)) throw std::runtime_error(std::string("regular expression: ICU error ") + u_errorName(error));
}

/// The expression in ICU's syntax, where \s lacks U+000B and U+0085.
std::string for_icu(std::string expression) {
  for (const auto& [name, in_icu] : {std::pair("\\s", "\\p{White_Space}"), std::pair("\\S", "\\P{White_Space}")})
    for (std::size_t at = 0; (at = expression.find(name, at)) != expression.npos;) expression.replace(at, 2, in_icu);
  return expression;
}

}  // namespace

PreTokenizer::PreTokenizer(const std::string& expression) {
  if (expression != kGpt2Expression && expression != kLlama3Expression && expression != kDigitsExpression)
    throw std::invalid_argument("expected the regular expression of GPT-2, Llama 3 or SmolLM, got " +
                                examples::in_quotes(expression));
  const auto pattern = icu::UnicodeString::fromUTF8(for_icu(expression));
  UErrorCode error = U_ZERO_ERROR;
  expression_.reset(uregex_open(pattern.getBuffer(), pattern.length(), 0, nullptr, &error), uregex_close);
  expect_success(error);
}

void PreTokenizer::cut(std::string_view text, const std::function<void(std::string_view)>& take) const {
  if (text.empty()) return;
  if (text.size() > std::numeric_limits<std::int32_t>::max())  // ICU's maximum
    throw std::invalid_argument("expected a text of less than 2 GB, got " + std::to_string(text.size()) + " bytes");

  // ICU reads the bytes in place, invalid ones as U+FFFD, and counts in bytes.
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<UText, decltype(&utext_close)> bytes(
      utext_openUTF8(nullptr, text.data(), static_cast<std::int64_t>(text.size()), &error), utext_close);
  expect_success(error);
  const Expression expression(uregex_clone(expression_.get(), &error), uregex_close);
  expect_success(error);
  uregex_setUText(expression.get(), bytes.get(), &error);
  expect_success(error);

  while (uregex_findNext(expression.get(), &error)) {
    const auto begin = static_cast<std::size_t>(uregex_start64(expression.get(), 0, &error));
    const auto end = static_cast<std::size_t>(uregex_end64(expression.get(), 0, &error));
    expect_success(error);
    take(text.substr(begin, end - begin));
  }
  expect_success(error);
}
