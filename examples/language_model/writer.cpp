#include "writer.hpp"

#include <tapegrad/tapegrad.hpp>

#include <xtensor/xview.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "../common/printable.hpp"
#include "../common/settings.hpp"

namespace tg = tapegrad;
using examples::Ids, examples::Text, examples::Vocabulary;

namespace {

/// What is wrong with a text that the user gave to an option.
[[noreturn]] void refuse(const std::string& option, const std::string& expected_and_given) {
  throw std::invalid_argument(option + ": expected " + expected_and_given);
}

Ids character_ids(const Text& text, const Vocabulary& vocabulary) {
  Ids ids;
  for (const char32_t c : text) ids.push_back(vocabulary.id(examples::encode(Text(1, c))));
  return ids;
}

/// The same for characters that were all learned, after the mark of a line's begin.
Ids read(const Writer& writer, const std::string& option, Text text) {
  if (writer.source == Source::words) text = examples::to_lower(std::move(text));
  Ids ids = character_ids(text, writer.vocabulary);
  if (const auto strange = std::find(ids.begin(), ids.end(), Vocabulary::unknown); strange != ids.end()) {
    const auto i = static_cast<std::size_t>(strange - ids.begin());
    refuse(option, "characters that the model has learned, given " + examples::in_quotes(examples::encode({text[i]})) +
                       " as character " + std::to_string(i + 1));
  }
  if (writer.writes_lines()) ids.insert(ids.begin(), Vocabulary::begin);
  return ids;
}

void require_room(const Writer& writer, const std::string& option, const Ids& ids) {
  const std::size_t marks = writer.writes_lines() ? 1 : 0;
  if (ids.size() > writer.options.context)
    refuse(option, "at most " + std::to_string(writer.options.context - marks) + " characters, given " +
                       std::to_string(ids.size() - marks));
}

}  // namespace

PackedIds Writer::encode(std::string_view text) const {
  PackedIds ids(vocabulary.size());
  const std::size_t most = writes_lines() ? options.context + 1 : std::numeric_limits<std::size_t>::max();
  ids.reserve(std::min(most, examples::character_count(text) + 2));
  if (writes_lines()) ids.push_back(Vocabulary::begin);
  for (std::string_view rest = text; !rest.empty() && ids.size() < most; text = rest) {
    examples::take_character(rest);
    ids.push_back(vocabulary.id(std::string(text.substr(0, text.size() - rest.size()))));
  }
  if (writes_lines() && ids.size() < most) ids.push_back(Vocabulary::end);
  return ids;
}

Ids Writer::read_prompt(const Text& prompt) const {
  const Ids ids = read(*this, "--prompt", prompt);
  if (writes_lines()) require_room(*this, "--prompt", ids);
  return ids.empty() ? character_ids(U"\n", vocabulary) : ids;
}

Ids Writer::read_explained(const Text& text) const {
  const Ids ids = read(*this, "--explain", text);
  require_room(*this, "--explain", ids);
  if (ids.size() < 2)
    refuse("--explain", "two characters or more, given " + examples::in_quotes(examples::encode(text)));
  return ids;
}

std::vector<std::string> Writer::shown(const Ids& ids) const {
  std::vector<std::string> characters;
  for (const std::int64_t id : ids)
    characters.push_back(id == Vocabulary::begin ? Vocabulary::shown_begin : vocabulary.token(id));
  return characters;
}

std::int64_t Writer::choose_next(const Ids& ids, double temperature) const {
  const std::size_t seen = std::min(ids.size(), options.context);
  tg::IntArray input(tg::Shape{1, seen});
  std::copy(ids.end() - static_cast<std::ptrdiff_t>(seen), ids.end(), input.begin());
  const auto output = model(input);                                        // (1, seen, vocabulary)
  const tg::Array<double> logits = xt::view(output.value(), 0, seen - 1);  // (vocabulary)

  // Of the marks, only the end may be chosen, and that in a line that has begun.
  const auto first = logits.begin() + Vocabulary::end + (writes_lines() && ids.size() > 1 ? 0 : 1);
  const auto likeliest = std::max_element(first, logits.end());
  if (temperature == 0) return likeliest - logits.begin();

  const auto weight = [&](double logit) { return std::exp((logit - *likeliest) / temperature); };
  double total = 0;
  for (auto logit = first; logit != logits.end(); ++logit) total += weight(*logit);
  double left = tg::uniform<double>({1}, 0, total)(0);
  auto chosen = first;
  for (; chosen + 1 != logits.end() && left >= weight(*chosen); ++chosen) left -= weight(*chosen);
  return chosen - logits.begin();
}

std::string Writer::write_line(Ids ids, double temperature) const {
  while (ids.size() <= options.context) {
    const std::int64_t next = choose_next(ids, temperature);
    if (next == Vocabulary::end) break;
    ids.push_back(next);
  }
  std::string line;
  for (std::size_t i = 1; i < ids.size(); ++i) line += vocabulary.token(ids[i]);
  return line;
}

namespace {

constexpr const char* program = "language_model";
const std::map<Source, std::string> names{{Source::words, "words"}, {Source::lines, "lines"}, {Source::text, "text"}};

Source source_of(const std::string& name) {
  for (const auto& [source, its_name] : names)
    if (name == its_name) return source;
  throw std::invalid_argument("a source " + examples::in_quotes(name));
}

}  // namespace

void save(const Writer& writer, const std::string& path) {
  const auto& [width, heads, positions, context] = writer.options;
  tg::save(writer.model, path,
           examples::as_metadata(program, {{"source", names.at(writer.source)},
                                           {"vocabulary", writer.vocabulary.tokens()},
                                           {"list", writer.list},
                                           {"width", width},
                                           {"heads", heads},
                                           {"positions", positions},
                                           {"context", context}}));
}

Writer load(const std::string& path) {
  return examples::make_from_settings(path, program, [&](const nlohmann::json& settings, std::size_t numbers) {
    using examples::names_at, examples::size_at;
    const std::size_t width = size_at(settings, "width", examples::largest_width(numbers)), rows = numbers / width;
    const bool positions = settings.at("positions");
    const ModelOptions options{.width = width,
                               .heads = size_at(settings, "heads", width),
                               .positions = positions,
                               .context = size_at(settings, "context", positions ? rows : longest_context)};
    const Vocabulary vocabulary(names_at(settings, "vocabulary", rows));
    Writer writer{source_of(settings.at("source")), vocabulary, settings.at("list"), options};
    tg::load(writer.model, path);
    return writer;
  });
}
