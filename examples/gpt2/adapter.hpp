/// LoRA: low-rank updates of a model's weights (Hu et al. 2021, arXiv:2106.09685) in separate files, in the format of
/// Hugging Face's PEFT: adapter_config.json and adapter_model.safetensors.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "pretrained.hpp"

/// The names of an adapter's files.
std::vector<std::string> adapter_files();

/// Freezes the model's weights and adds low-rank updates, initially 0, to its attention projections. Updates are scaled
/// by alpha / rank; alpha = 0 means twice the rank.
void add_updates(LanguageModel<>& model, std::size_t rank, double alpha);

/// The parameters that are not frozen.
tapegrad::Parameters<float> trained_parameters(LanguageModel<>& model);

/// A copy of the model with its updates merged into the weights.
Pretrained merged(const Pretrained& pretrained);

/// Writes the updates into a folder. GPT-2's files store the query, key and value projections as one matrix, so their
/// updates are stored as one with three times the rank. Throws std::runtime_error if a file cannot be written.
void save_adapter(const Pretrained& pretrained, const std::filesystem::path& folder);

/// Loads updates from a folder written by PEFT or save_adapter. Throws std::runtime_error, naming the file, for an
/// incompatible one, and the setting, for an unsupported one.
void load_adapter(Pretrained& pretrained, const std::filesystem::path& folder);
