#include "writing.hpp"

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../common/explain.hpp"
#include "../common/printable.hpp"
#include "../common/progress.hpp"
#include "../common/shift.hpp"
#include "../common/step_page.hpp"
#include "../gpt/continuation.hpp"
#include "files.hpp"
#include "score.hpp"
#include "utf8_stream.hpp"

namespace tg = tapegrad;
using examples::Ids;

namespace {

/// (1, T + 1)
tg::IntArray as_row(const Ids& ids) {
  tg::IntArray row(tg::Shape{1, ids.size()});
  std::copy(ids.begin(), ids.end(), row.begin());
  return row;
}

/// The printed form of each token, with U+FFFD for incomplete characters.
std::vector<std::string> shown(const Tokenizer& tokenizer, const Ids& ids) {
  std::vector<std::string> tokens;
  for (const std::int64_t id : ids) {
    Utf8Stream stream;
    std::string text = stream.put(tokenizer.bytes(id));
    tokens.push_back(text + stream.end());
  }
  return examples::visible(tokens);
}

std::string with_digits(double number, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << number;
  return text.str();
}

}  // namespace

void check_texts(const Description& description, const Gpt2Options& options) {
  const Tokenizer& tokenizer = description.tokenizer;
  if (options.writes && options.writing.prompt.empty() && !tokenizer.end_of_text() &&
      tokenizer.encode_alone("").empty())
    throw std::invalid_argument("--prompt: required for a tokenizer without " +
                                std::string(TokenizerParts::end_of_text));
  if (options.explain.wanted) {
    const std::size_t max_tokens = description.config.model.context + 1;  // the last one is only predicted
    const std::size_t given = tokenizer.encode_alone(options.explain.text).size();
    if (given < 2 || given > max_tokens)
      throw std::invalid_argument("--explain: expected from 2 to " + std::to_string(max_tokens) + " tokens, got " +
                                  std::to_string(given));
  }
  if (options.page.text && tokenizer.encode_alone(*options.page.text).size() < 2)
    throw std::invalid_argument("--page: expected a text of at least two tokens");
}

void write_on(const Pretrained& pretrained, const WritingOptions& options, std::uint64_t seed) {
  const auto& [config, tokenizer, model, other_files] = pretrained;
  tg::Generator generator(seed);
  Ids ids = tokenizer.encode_alone(options.prompt);
  if (ids.empty()) ids.push_back(*tokenizer.end_of_text());
  Continuation continuation(
      model, config.model.context, std::move(ids),
      {.temperature = options.temperature, .top_k = options.top_k, .top_p = options.top_p, .generator = &generator});
  std::cout << examples::printable_text(options.prompt) << std::flush;
  Utf8Stream stream;
  for (std::size_t left = options.length.value_or(100); left > 0 && std::cout; --left) {
    const std::int64_t next = continuation.next();
    if (next == tokenizer.end_of_text() || std::ranges::find(config.ends, next) != config.ends.end()) break;
    std::cout << examples::printable_text(stream.put(tokenizer.bytes(next))) << std::flush;
  }
  std::cout << stream.end() << '\n';
}

void explain(const Pretrained& pretrained, const examples::ExplainOptions& options) {
  const auto& [config, tokenizer, model, other_files] = pretrained;
  const Ids ids = tokenizer.encode_alone(options.text);
  const std::vector<std::string> tokens = shown(tokenizer, {ids.begin(), ids.end() - 1});
  const auto [input, next] = examples::shift(as_row(ids));  // (1, T)

  tg::Tape tape;
  auto [logits, weights] = model.with_weights(input);  // (1, T, vocabulary), each (1, heads, T, T)
  for (auto& of_one : weights) of_one.retain_grad();
  tg::CrossEntropyOptions<float> sum;
  sum.reduction = tg::Reduction::sum;
  const auto log_probability = -tg::cross_entropy(logits, next, sum);
  log_probability.backward();

  const std::string perplexity = with_digits(std::exp(-double(log_probability.item()) / double(next.size())), 2);
  std::cout << "\nattention on the text (perplexity " << perplexity << " per token):\n";
  examples::write_attention(weights, tokens, tokens, options.name, options.text + ", perplexity " + perplexity);
}

void show_step(const Pretrained& pretrained, const std::string& file, Ids ids, std::string about) {
  const auto& [config, tokenizer, model, other_files] = pretrained;
  const std::size_t all = ids.size();
  ids.resize(std::min(all, config.model.context + 1));
  const auto [input, next] = examples::shift(as_row(ids));  // (1, T)
  const auto loss_of_step = [&, &seen = input, &said = next](const LanguageModel<>& copy) {
    auto logits = copy(seen);  // (1, T, vocabulary)
    logits.set_name("logits");
    return tg::cross_entropy(logits, said);
  };
  if (ids.size() < all)
    about += ", the first " + std::to_string(ids.size()) + " of " + examples::with_commas(all) + " tokens";
  const tg::PageAxis batch{"batch"}, width{}, token{"token", shown(tokenizer, {ids.begin(), ids.end() - 1})},
      next_token{"next token"}, vocabulary{"vocabulary"};
  examples::write_step(file, model, loss_of_step,
                       {about,
                        {{"", {batch, token, width}},
                         {"positions", {token, width}},
                         {"embedding.weight", {vocabulary, width}},
                         {"head.weight", {next_token, width}},
                         {"logits", {batch, token, next_token}}}});
}

void print_tokens(const Tokenizer& tokenizer, const std::string& file) {
  const char* between = "";
  for (const std::int64_t id : tokenizer.encode_alone(read_file(file), Special::as_tokens)) {
    std::cout << between << id;
    between = " ";
  }
  std::cout << '\n';
}

void print_score(const Pretrained& pretrained, const std::string& folder, const std::string& file) {
  const auto& [config, tokenizer, model, other_files] = pretrained;
  const Ids ids = tokenizer.encode_alone(read_file(file), Special::as_tokens);
  if (ids.size() < 2)
    throw std::runtime_error(file + ": expected a text of at least two tokens, got " + std::to_string(ids.size()));
  const std::size_t context = config.model.context, windows = windows_of(ids.size(), context).size();
  Score result;
  {
    examples::Progress progress(windows, std::max<std::size_t>(1, windows / 10));
    result = score(model, context, ids, [&](std::size_t window, const Score& of_window) {
      if (windows > 1) progress.report(window, of_window.mean(), of_window.tokens);
    });
  }
  require_finite(result.mean(), folder);
  std::cout << examples::printable(file) << ": perplexity " << with_digits(std::exp(result.mean()), 4)
            << " per token, loss " << with_digits(result.mean(), 4) << ", over " << examples::with_commas(result.tokens)
            << " tokens\n";
}
