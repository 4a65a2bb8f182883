/// The settings that a program keeps in a checkpoint beside the parameters, so that it can make the model again.
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

namespace examples {

/// The settings as tapegrad::save takes them, under the name of the program.
inline tapegrad::Metadata as_metadata(const std::string& program, const nlohmann::json& settings) {
  return {{program, settings.dump()}};
}

/// A size among the settings of a file. `most` is what the file has room for, so that a model takes no more memory than
/// its file gives reason for, whatever the settings claim. Throws std::invalid_argument naming the setting otherwise.
inline std::size_t size_at(const nlohmann::json& settings, const char* name, std::size_t most) {
  const nlohmann::json& value = settings.at(name);
  if (!value.is_number_unsigned() || value == 0 || value > most)
    throw std::invalid_argument(std::string(name) + ": expected a whole number from 1 to " + std::to_string(most) +
                                ", as large as the file allows, got " + printable(value.dump(), 60));
  return value;
}

/// Names among the settings of a file, each of which stands for some of the file's numbers. Throws as size_at does.
inline std::vector<std::string> names_at(const nlohmann::json& settings, const char* name, std::size_t most) {
  const nlohmann::json& value = settings.at(name);
  if (value.empty() || value.size() > most)
    throw std::invalid_argument(std::string(name) + ": expected from 1 to " + std::to_string(most) +
                                ", as many as the file allows, got " + std::to_string(value.size()));
  return value;
}

/// The largest width of a model with attention whose file has so many numbers: four projections are (width, width).
inline std::size_t largest_width(std::size_t numbers) {
  return static_cast<std::size_t>(std::sqrt(static_cast<double>(numbers / 4)));
}

/// Options that a program has kept, each as it stands there: converting alone makes 2^64 - 1 of -1, 2 of 2.5, and the
/// first of some names of any other. Throws std::invalid_argument naming the first that the program has not written.
template <class Options> Options kept_options(const nlohmann::json& settings) {
  const Options options = settings;
  const nlohmann::json given = settings.flatten(), written = nlohmann::json(options).flatten();
  for (const auto& [place, value] : given.items())
    if (!written.contains(place) || written.at(place).dump() != value.dump())
      throw std::invalid_argument(place + ": expected a value that the program writes, got " +
                                  printable(value.dump(), 60));
  return options;
}

/// What `make` makes of the settings that a program has saved, a nlohmann::json, and of how many numbers the file has
/// room for. Throws std::runtime_error naming the file when it is no checkpoint of this program, and when `make` cannot
/// use what it finds.
template <class Make> auto make_from_settings(const std::string& path, const std::string& program, Make make) {
  const tapegrad::Metadata metadata = tapegrad::load_metadata(path);
  const auto entry = metadata.find(program);
  if (entry == metadata.end())
    throw std::runtime_error(path + ": expected a model that " + program + " saved, got another checkpoint");

  const auto unfit = [&](const std::exception& error) {
    return std::runtime_error(path + ": expected settings that " + program + " saved, got others: " + error.what());
  };
  try {
    const tapegrad::SkipInitialization skip;  // the model's weights are the file's
    return make(nlohmann::json::parse(entry->second), std::filesystem::file_size(path) / sizeof(float));
  } catch (const nlohmann::json::exception& error) {
    throw unfit(error);
  } catch (const std::logic_error& error) {  // sizes that no layer has
    throw unfit(error);
  }
}

}  // namespace examples
