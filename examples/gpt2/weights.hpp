/// A model's parameters in the files that PyTorch's users have.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <filesystem>

#include "../gpt/model.hpp"
#include "config.hpp"

/// Makes the model of a configuration, with the weights of `folder`/model.safetensors. Throws std::runtime_error,
/// naming the file and the tensor, for a file that has not what the configuration says, or more.
LanguageModel<> load_model(const Config& config, const std::filesystem::path& folder);

/// Writes `folder`/model.safetensors as load_model reads it and Hugging Face's libraries do. Throws as tapegrad::save.
void save_weights(const LanguageModel<>& model, const Config& config, const std::filesystem::path& folder);
