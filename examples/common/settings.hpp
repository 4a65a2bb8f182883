/// A program's settings in a checkpoint, to reconstruct the model before loading its parameters.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "printable.hpp"
#include "text.hpp"
#include "vocabulary.hpp"

namespace examples {

NLOHMANN_JSON_SERIALIZE_ENUM(Encoding, {{Encoding::utf8, "utf-8"}, {Encoding::latin1, "latin1"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Unit, {{Unit::characters, "characters"}, {Unit::words, "words"}})

/// The settings as metadata for tapegrad::save, under the program's name.
inline tapegrad::Metadata as_metadata(const std::string& program, const nlohmann::json& settings) {
  return {{program, settings.dump()}};
}

/// Reads a size from a file's settings. `max` follows from the file's length, so corrupt settings cannot make the
/// model allocate more. Throws std::invalid_argument, naming the setting, if it is not a whole number from 1 to `max`.
inline std::size_t size_at(const nlohmann::json& settings, const char* name, std::size_t max) {
  const nlohmann::json& value = settings.at(name);
  if (!value.is_number_unsigned() || value == 0 || value > max)
    throw std::invalid_argument(std::string(name) + ": expected a whole number from 1 to " + std::to_string(max) +
                                ", the limit from the file's length, got " + printable(value.dump(), 60));
  return value;
}

/// Reads 1 to `max` names from a file's settings. `max` follows from the file's length. Throws like size_at.
inline std::vector<std::string> names_at(const nlohmann::json& settings, const char* name, std::size_t max) {
  const nlohmann::json& value = settings.at(name);
  if (value.empty() || value.size() > max)
    throw std::invalid_argument(std::string(name) + ": expected from 1 to " + std::to_string(max) +
                                " elements, the limit from the file's length, got " + std::to_string(value.size()));
  return value;
}

/// The maximum width of an attention model with `numbers` parameters: it has four projections of (width, width).
inline std::size_t largest_width(std::size_t numbers) {
  return static_cast<std::size_t>(std::sqrt(static_cast<double>(numbers / 4)));
}

/// Parses saved options strictly: plain conversion turns -1 into 2^64 - 1, 2.5 into 2 and an unknown name into the
/// first choice. Throws std::invalid_argument, naming the first value the program would write differently.
template <class Options> Options saved_options(const nlohmann::json& settings) {
  const Options options = settings;
  const nlohmann::json given = settings.flatten(), written = nlohmann::json(options).flatten();
  for (const auto& [place, value] : given.items())
    if (!written.contains(place) || written.at(place).dump() != value.dump())
      throw std::invalid_argument(place + ": expected a value written by this program, got " +
                                  printable(value.dump(), 60));
  return options;
}

/// Returns make(settings, numbers): the program's settings as nlohmann::json and the maximum number of parameters in a
/// file of this length. Throws std::runtime_error, naming the file, if it is not a checkpoint of this program or `make`
/// rejects the settings.
template <class Make> auto make_from_settings(const std::string& path, const std::string& program, Make make) {
  const tapegrad::Metadata metadata = tapegrad::load_metadata(path);
  const auto entry = metadata.find(program);
  if (entry == metadata.end())
    throw std::runtime_error(path + ": expected a model saved by " + program + ", got another checkpoint");

  const auto unfit = [&](const std::exception& error) {
    return std::runtime_error(path + ": expected settings saved by " + program + ", got others: " + error.what());
  };
  try {
    const tapegrad::SkipInitialization skip;  // the weights come from the file
    return make(nlohmann::json::parse(entry->second), std::filesystem::file_size(path) / sizeof(float));
  } catch (const nlohmann::json::exception& error) {
    throw unfit(error);
  } catch (const std::logic_error& error) {  // invalid layer sizes
    throw unfit(error);
  }
}

/// Reads the options of a run from its checkpoint's metadata entry SavedRun::entry. Throws std::runtime_error, naming
/// the file, if it is not a run of this program.
template <class SavedRun> SavedRun read_saved(const std::string& path) {
  return make_from_settings(path, SavedRun::entry, [](const nlohmann::json& settings, std::size_t) {
    return saved_options<SavedRun>(settings);
  });
}

}  // namespace examples
