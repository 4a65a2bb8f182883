/// Reads and writes a model's parameters in Hugging Face's files.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <filesystem>

#include "../gpt/model.hpp"
#include "config.hpp"

/// Makes the configuration's model with the weights of `folder`/model.safetensors. Throws std::runtime_error, naming
/// the file and the tensor, if the file does not match the configuration.
LanguageModel<> load_model(const Config& config, const std::filesystem::path& folder);

/// Writes `folder`/model.safetensors for load_model and Hugging Face's libraries. Throws like tapegrad::save.
void save_weights(const LanguageModel<>& model, const Config& config, const std::filesystem::path& folder);
