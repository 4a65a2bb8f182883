#include "writing.hpp"

#include <cmath>
#include <iomanip>
#include <iostream>
#include <set>
#include <sstream>
#include <vector>

#include "../common/batches.hpp"
#include "../common/explain.hpp"
#include "../common/printable.hpp"
#include "../common/progress.hpp"
#include "../common/shift.hpp"
#include "../common/step_page.hpp"
#include "../gpt/continuation.hpp"
#include "evaluate.hpp"

namespace tg = tapegrad;
using examples::Ids, examples::Vocabulary;

namespace {

/// Sampling options for the next id.
tg::SampleOptions choice(const WritingOptions& options, tg::Generator& generator) {
  return {.temperature = options.temperature, .top_k = options.top_k, .top_p = options.top_p, .generator = &generator};
}

/// The first id after the special ones. The only special id generated is the end mark, in nonempty lines.
constexpr std::int64_t first_character = Vocabulary::end + 1;

/// Generates a line up to its end mark or the context's length. Returns it with the prompt.
std::string write_line(const Writer& writer, const Ids& prompt, const WritingOptions& options,
                       tg::Generator& generator) {
  std::string line;
  for (std::size_t i = 1; i < prompt.size(); ++i) line += writer.vocabulary.token(prompt[i]);
  Continuation continuation(writer.model, writer.options.context, prompt, choice(options, generator));
  for (std::size_t size = prompt.size(); size <= writer.options.context; ++size) {
    const std::int64_t next = continuation.next(size > 1 ? Vocabulary::end : first_character);
    if (next == Vocabulary::end) break;
    line += writer.vocabulary.token(next);
  }
  return line;
}

/// Prints distinct generated lines that are not in the list, and the number of known and repeated lines.
void invent_lines(const Writer& writer, const Ids& prompt, const WritingOptions& options, tg::Generator& generator) {
  const std::size_t count = options.length.value_or(20);
  std::cout << "\ninvented " << (writer.source == Source::words ? "words" : "lines") << ":\n";
  std::set<std::string> invented;
  std::size_t known = 0, again = 0;
  while (std::cout && invented.size() < count && (known + again) / 20 < count) {
    const std::string line = write_line(writer, prompt, options, generator);
    if (writer.list.contains(line))
      ++known;
    else if (invented.insert(line).second)
      std::cout << "  " << examples::printable(line) << std::endl;
    else
      ++again;
  }
  std::cout << "left out: " << known << " already in the list, " << again << " repeated\n";
}

void continue_text(const Writer& writer, const Ids& prompt, const WritingOptions& options, tg::Generator& generator) {
  std::cout << "\ngenerated text:\n" << examples::printable_text(options.prompt);
  Continuation continuation(writer.model, writer.options.context, prompt, choice(options, generator));
  for (std::size_t left = options.length.value_or(500); left > 0 && std::cout; --left)
    std::cout << examples::printable_text(writer.vocabulary.token(continuation.next(first_character))) << std::flush;
  std::cout << '\n';
}

/// Writes the attention weights on a text and the gradients of its log probability with respect to them.
void explain(const Writer& writer, const examples::ExplainOptions& options) {
  Ids ids = writer.read_explained(examples::decode(options.text));
  const std::vector<std::string> shown = writer.shown(ids);
  ids.push_back(writer.writes_lines() ? Vocabulary::end
                                      : Vocabulary::padding);              // padding: a text has no end to predict
  const std::size_t count = ids.size() - (writer.writes_lines() ? 1 : 2);  // predicted characters
  const std::size_t chosen[] = {0};
  const auto [input, next] = examples::shift(examples::pad({ids}, chosen).ids);  // (1, T)

  tg::Tape tape;
  auto [logits, weights] = writer.model.with_weights(input);  // (1, T, vocabulary), each (1, heads, T, T)
  for (auto& of_one : weights) of_one.retain_grad();
  const auto log_probability = -loss_of(logits, next, tg::Reduction::sum);
  log_probability.backward();

  std::ostringstream perplexity;
  perplexity << std::fixed << std::setprecision(2) << std::exp(-double(log_probability.item()) / double(count));
  std::cout << "\nattention on the text (perplexity " << perplexity.str() << " per character):\n";
  examples::write_attention(weights, shown, shown, options.name, options.text + ", perplexity " + perplexity.str());
}

/// Describes the text of a step: all input and predicted characters.
std::string about_step(const Writer& writer, const examples::StepPageOptions& options, Ids ids) {
  std::erase_if(ids, [](std::int64_t id) { return id == Vocabulary::begin || id == Vocabulary::end; });
  std::string text;
  for (const std::string& character : writer.shown(ids)) text += character;
  text = examples::in_quotes(text);
  if (!options.text) return text + ", the first test text";
  const std::size_t all = examples::character_count(*options.text);
  if (ids.size() == all) return text;
  return text + ", the first " + std::to_string(ids.size()) + " of " + examples::with_commas(all) + " characters";
}

}  // namespace

void check_use(const Writer& writer, const LanguageModelOptions& options) {
  writer.read_prompt(examples::decode(options.writing.prompt));
  if (!options.explain.text.empty()) writer.read_explained(examples::decode(options.explain.text));
  if (options.page.text) writer.read_step(examples::decode(*options.page.text));
}

void show_step(const Writer& writer, const examples::StepPageOptions& options, const std::vector<Ids>& tests) {
  const Ids ids = options.text ? writer.read_step(examples::decode(*options.text)) : tests.front();
  const auto loss_of_step = [&](const LanguageModel<>& model) {
    const std::size_t chosen[] = {0};
    const auto [input, next] = examples::shift(examples::pad({ids}, chosen).ids);  // (1, T)
    auto logits = model(input);                                                    // (1, T, vocabulary)
    logits.set_name("logits");
    return loss_of(logits, next, tg::Reduction::mean);
  };

  const std::vector<std::string> shown = writer.shown(ids), vocabulary = examples::visible(writer.vocabulary.shown());
  const tg::PageAxis batch{"batch"}, width{}, token{"token", examples::visible({shown.begin(), shown.end() - 1})},
      next_token{"next token", vocabulary};
  examples::write_step(options.file, writer.model, loss_of_step,
                       {about_step(writer, options, ids),
                        {{"", {batch, token, width}},
                         {"positions", {token, width}},
                         {"embedding.weight", {{"vocabulary", vocabulary}, width}},
                         {"head.weight", {next_token, width}},
                         {"head.bias", {next_token}},
                         {"logits", {batch, token, next_token}}}});
}

void use(Writer& writer, const LanguageModelOptions& options) {
  tg::eval(writer.model);
  tg::Generator generator(options.run.seed);  // reseeded: a loaded model writes the same as after training
  const Ids prompt = writer.read_prompt(examples::decode(options.writing.prompt));
  if (writer.writes_lines())
    invent_lines(writer, prompt, options.writing, generator);
  else
    continue_text(writer, prompt, options.writing, generator);
  if (!options.explain.text.empty()) explain(writer, options.explain);
}

std::string sample_line(Writer& writer, const LanguageModelOptions& options) {
  constexpr std::size_t longest = 72;
  tg::eval(writer.model);
  tg::Generator generator(options.run.seed);
  const Ids prompt = writer.read_prompt(examples::decode(options.writing.prompt));
  std::string line;
  if (writer.writes_lines()) {
    line = write_line(writer, prompt, options.writing, generator);
  } else {
    line = options.writing.prompt;
    Continuation continuation(writer.model, writer.options.context, prompt, choice(options.writing, generator));
    for (std::size_t i = 0; i < longest; ++i) {
      const std::string& token = writer.vocabulary.token(continuation.next(first_character));
      if (token != "\n")
        line += token;
      else if (!line.empty())
        break;
    }
  }
  tg::train(writer.model);
  return examples::printable(line, longest);
}
