#include "writer.hpp"

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "../common/printable.hpp"
#include "../common/settings.hpp"

namespace tg = tapegrad;
using examples::Ids, examples::Text, examples::Vocabulary;

namespace {

/// Throws the error for an option's invalid text.
[[noreturn]] void refuse(const std::string& option, const std::string& expected_and_given) {
  throw std::invalid_argument(option + ": expected " + expected_and_given);
}

Ids character_ids(const Text& text, const Vocabulary& vocabulary) {
  Ids ids;
  for (const char32_t c : text) ids.push_back(vocabulary.id(examples::encode(Text(1, c))));
  return ids;
}

/// The ids of an option's text, after the begin mark for lines. Throws for unknown characters.
Ids read(const Writer& writer, const std::string& option, Text text) {
  if (writer.source == Source::words) text = examples::to_lower(std::move(text));
  Ids ids = character_ids(text, writer.vocabulary);
  if (const auto strange = std::find(ids.begin(), ids.end(), Vocabulary::unknown); strange != ids.end()) {
    const auto i = static_cast<std::size_t>(strange - ids.begin());
    refuse(option, "characters in the model's vocabulary, got " + examples::in_quotes(examples::encode({text[i]})) +
                       " at character " + std::to_string(i + 1));
  }
  if (writer.writes_lines()) ids.insert(ids.begin(), Vocabulary::begin);
  return ids;
}

/// Throws for a text without a character to predict.
void require_two(const std::string& option, const Ids& ids, const Text& text) {
  if (ids.size() < 2) refuse(option, "at least two characters, got " + examples::in_quotes(examples::encode(text)));
}

void require_room(const Writer& writer, const std::string& option, const Ids& ids) {
  const std::size_t marks = writer.writes_lines() ? 1 : 0;
  if (ids.size() > writer.options.context)
    refuse(option, "at most " + std::to_string(writer.options.context - marks) + " characters, got " +
                       std::to_string(ids.size() - marks));
}

}  // namespace

PackedIds Writer::encode(std::string_view text) const {
  PackedIds ids(vocabulary.size());
  const std::size_t max_count = writes_lines() ? options.context + 1 : std::numeric_limits<std::size_t>::max();
  ids.reserve(std::min(max_count, examples::character_count(text) + 2));
  if (writes_lines()) ids.push_back(Vocabulary::begin);
  for (std::string_view rest = text; !rest.empty() && ids.size() < max_count; text = rest) {
    examples::take_character(rest);
    ids.push_back(vocabulary.id(std::string(text.substr(0, text.size() - rest.size()))));
  }
  if (writes_lines() && ids.size() < max_count) ids.push_back(Vocabulary::end);
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
  require_two("--explain", ids, text);
  return ids;
}

Ids Writer::read_step(const Text& text) const {
  Ids ids = read(*this, "--page", text);
  require_two("--page", ids, text);
  if (writes_lines()) ids.push_back(Vocabulary::end);
  ids.resize(std::min(ids.size(), options.context + 1));
  return ids;
}

std::vector<std::string> Writer::shown(const Ids& ids) const {
  const std::vector<std::string> all = vocabulary.shown();
  std::vector<std::string> characters;
  for (const std::int64_t id : ids) characters.push_back(all[static_cast<std::size_t>(id)]);
  return characters;
}

namespace {

constexpr const char* program = "language_model";

/// Throws for sizes that require a model with more parameters than the file holds.
ModelOptions read_sizes(const nlohmann::json& settings, std::size_t numbers) {
  using examples::size_at;
  const std::size_t width = size_at(settings, "width", examples::largest_width(numbers)),
                    heads = size_at(settings, "heads", width);
  for (const auto& [name, max_count] : {std::pair("kv_heads", heads), std::pair("feed_forward", numbers / width)})
    if (settings.value(name, 0) != 0) size_at(settings, name, max_count);
  const ModelOptions options = settings;
  size_at(settings, "context", options.positions == Positions::learned ? numbers / width : longest_context);
  if (options.layers != 0)
    size_at(settings, "layers", static_cast<std::size_t>(static_cast<double>(numbers) / numbers_in_block(options)));
  return options;
}

Source read_source(const nlohmann::json& name) {
  const Source source = name;
  if (nlohmann::json(source) != name) throw std::invalid_argument("a source " + examples::in_quotes(name.dump()));
  return source;
}

}  // namespace

tg::Metadata settings_of(const Writer& writer) {
  nlohmann::json settings = writer.options;
  settings["source"] = writer.source;
  settings["vocabulary"] = writer.vocabulary.tokens();
  settings["list"] = writer.list;
  return examples::as_metadata(program, settings);
}

void save(const Writer& writer, const std::string& path) { tg::save(writer.model, path, settings_of(writer)); }

Writer load(const std::string& path) {
  return examples::make_from_settings(path, program, [&](const nlohmann::json& settings, std::size_t numbers) {
    const ModelOptions options = read_sizes(settings, numbers);
    const Vocabulary vocabulary(examples::names_at(settings, "vocabulary", numbers / options.width));
    Writer writer{read_source(settings.at("source")), vocabulary, settings.at("list"), options};
    const bool is_run = tg::load_metadata(path).contains(SavedRun::entry);
    tg::load(writer.model, path, {.prefix = is_run ? "model." : ""});
    return writer;
  });
}
