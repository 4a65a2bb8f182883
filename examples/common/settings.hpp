/// The settings that a program keeps in a checkpoint beside the parameters, so that it can make the model again.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>

namespace examples {

/// The settings as tapegrad::save takes them, under the name of the program.
inline tapegrad::Metadata as_metadata(const std::string& program, const nlohmann::json& settings) {
  return {{program, settings.dump()}};
}

/// What `make` makes of the settings that a program has saved: of a nlohmann::json. Throws std::runtime_error naming
/// the file when it is no checkpoint of this program, and when `make` cannot use what it finds.
template <class Make> auto make_from_settings(const std::string& path, const std::string& program, Make make) {
  const tapegrad::Metadata metadata = tapegrad::load_metadata(path);
  const auto entry = metadata.find(program);
  if (entry == metadata.end())
    throw std::runtime_error(path + ": expected a model that " + program + " saved, given another checkpoint");

  const auto unfit = [&](const std::exception& error) {
    return std::runtime_error(path + ": expected settings that " + program + " saved, given others: " + error.what());
  };
  try {
    return make(nlohmann::json::parse(entry->second));
  } catch (const nlohmann::json::exception& error) {
    throw unfit(error);
  } catch (const std::logic_error& error) {  // sizes that no layer has
    throw unfit(error);
  }
}

}  // namespace examples
