#include "pronouncer.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "../common/printable.hpp"
#include "../common/settings.hpp"

namespace pronounce {

namespace tg = tapegrad;
using examples::Ids, examples::Unit, examples::Vocabulary;

namespace {

constexpr const char* program = "pronounce";

Ids encode(const Vocabulary& vocabulary, const std::vector<std::string>& tokens, std::size_t max_length) {
  Ids ids{Vocabulary::begin};
  for (const std::string& token : tokens) ids.push_back(vocabulary.id(token));
  ids.push_back(Vocabulary::end);
  ids.resize(std::min(ids.size(), max_length));
  return ids;
}

Vocabulary vocabulary_of(const std::vector<Pair>& pairs, std::vector<std::string> Pair::*side) {
  std::set<std::string> tokens;
  for (const Pair& pair : pairs) tokens.insert((pair.*side).begin(), (pair.*side).end());
  return Vocabulary({tokens.begin(), tokens.end()});
}

std::size_t longest(const Pairs& pairs, std::vector<std::string> Pair::*side) {
  std::size_t length = 0;
  for (const auto* part : {&pairs.train, &pairs.test})
    for (const Pair& pair : *part) length = std::max(length, (pair.*side).size());
  return length + 2;  // with begin and end marks
}

std::vector<std::string> shown(const Vocabulary& vocabulary, const Ids& ids) {
  const std::vector<std::string> all = vocabulary.shown();
  std::vector<std::string> tokens;
  for (const std::int64_t id : ids) tokens.push_back(all[static_cast<std::size_t>(id)]);
  return tokens;
}

}  // namespace

Ids Pronouncer::encode_source(const std::vector<std::string>& tokens) const {
  return encode(sources, tokens, source_length);
}

Ids Pronouncer::encode_target(const std::vector<std::string>& tokens) const {
  return encode(targets, tokens, target_length);
}

Ids Pronouncer::read_source(const std::string& option, const std::string& text) const {
  const std::vector<std::string> tokens = tokens_of(text, source_unit);
  const auto refuse = [&](const std::string& expected, const std::string& given) {
    throw std::invalid_argument(option + ": expected " + expected + ", got " + given);
  };
  if (tokens.empty() || tokens.size() + 2 > source_length)
    refuse("from 1 to " + std::to_string(source_length - 2) + " tokens, as in training", std::to_string(tokens.size()));
  for (const std::string& token : tokens)
    if (sources.id(token) == Vocabulary::unknown)
      refuse("tokens of the training data", examples::in_quotes(token) + " in " + examples::in_quotes(text));
  return encode_source(tokens);
}

std::string Pronouncer::target_text(const Ids& ids) const {
  std::string text;
  for (const std::string& token : shown_target(ids)) {
    if (target_unit == Unit::words && !text.empty()) text += ' ';
    text += token;
  }
  return text;
}

std::vector<std::string> Pronouncer::shown_source(const Ids& ids) const { return shown(sources, ids); }
std::vector<std::string> Pronouncer::shown_target(const Ids& ids) const { return shown(targets, ids); }

Pronouncer make_pronouncer(const Pairs& pairs, const PronounceOptions& options) {
  const bool is_dictionary = options.run.data.empty();
  return {is_dictionary ? Unit::characters : options.run.source,
          is_dictionary ? Unit::words : options.run.target,
          is_dictionary,
          vocabulary_of(pairs.train, &Pair::source),
          vocabulary_of(pairs.train, &Pair::target),
          longest(pairs, &Pair::source),
          longest(pairs, &Pair::target),
          options.model};
}

EncodedPairs encode(const Pronouncer& pronouncer, const std::vector<Pair>& pairs) {
  EncodedPairs encoded;
  for (const Pair& pair : pairs) {
    encoded.sources.push_back(pronouncer.encode_source(pair.source));
    encoded.targets.push_back(pronouncer.encode_target(pair.target));
  }
  return encoded;
}

tg::Metadata settings_of(const Pronouncer& pronouncer) {
  nlohmann::json settings = pronouncer.options;
  settings["source_unit"] = pronouncer.source_unit;
  settings["target_unit"] = pronouncer.target_unit;
  settings["has_stress"] = pronouncer.has_stress;
  settings["sources"] = pronouncer.sources.tokens();
  settings["targets"] = pronouncer.targets.tokens();
  settings["source_length"] = pronouncer.source_length;
  settings["target_length"] = pronouncer.target_length;
  return examples::as_metadata(program, settings);
}

void save(const Pronouncer& pronouncer, const std::string& path) {
  tg::save(pronouncer.model, path, settings_of(pronouncer));
}

/// A unit by its name. Throws std::invalid_argument for another name.
static Unit unit_at(const nlohmann::json& settings, const char* name) {
  const Unit unit = settings.at(name);
  if (nlohmann::json(unit) != settings.at(name))
    throw std::invalid_argument(std::string(name) + ": expected characters or words, got " +
                                examples::printable(settings.at(name).dump(), 60));
  return unit;
}

Pronouncer load(const std::string& path) {
  return examples::make_from_settings(path, program, [&](const nlohmann::json& settings, std::size_t numbers) {
    using examples::names_at, examples::size_at;
    const std::size_t width = size_at(settings, "width", examples::largest_width(numbers)), rows = numbers / width;
    size_at(settings, "heads", width);
    size_at(settings, "layers", numbers / (width * width));
    Pronouncer pronouncer{unit_at(settings, "source_unit"),
                          unit_at(settings, "target_unit"),
                          settings.at("has_stress"),
                          Vocabulary(names_at(settings, "sources", rows)),
                          Vocabulary(names_at(settings, "targets", rows)),
                          size_at(settings, "source_length", rows),
                          size_at(settings, "target_length", rows),
                          settings};
    const bool is_run = tg::load_metadata(path).contains(SavedRun::entry);
    tg::load(pronouncer.model, path, {.prefix = is_run ? "model." : ""});
    return pronouncer;
  });
}

}  // namespace pronounce
