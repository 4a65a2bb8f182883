/// Reads a model's configuration.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "../gpt/model.hpp"

/// The architecture, with its names of weights.
enum class Family { gpt2, llama };

/// A model's configuration in Hugging Face's config.json.
struct Config {
  Family family;
  std::size_t vocabulary;
  ModelOptions model;
  std::vector<std::int64_t> ends;  ///< ids that end a text
  nlohmann::json json;             ///< the original, to be saved with derived weights
};

/// Reads `folder`/config.json. Throws std::runtime_error, naming the file, if it is invalid or requires unsupported
/// features.
Config read_config(const std::filesystem::path& folder);
