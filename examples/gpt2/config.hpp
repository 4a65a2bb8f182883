/// What a folder of weights says of its model.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "../gpt/model.hpp"

/// Whose names and formulas the weights have.
enum class Family { gpt2, llama };

/// A model as Hugging Face's config.json describes it.
struct Config {
  Family family;
  std::size_t vocabulary;
  ModelOptions model;
  std::vector<std::int64_t> ends;  ///< ids after which a text is at its end
  nlohmann::json json;             ///< as it was read, to be kept with what is made of the weights
};

/// Reads `folder`/config.json. Throws std::runtime_error, naming the file, when it is none, and when it asks for what
/// this program cannot do.
Config read_config(const std::filesystem::path& folder);
