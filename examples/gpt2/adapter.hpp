/// Low-rank updates of a model's weights (Hu et al. 2021, arXiv:2106.09685), apart from it, as Hugging Face's PEFT has
/// them: adapter_config.json and adapter_model.safetensors.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "pretrained.hpp"

/// The names of an adapter's files.
std::vector<std::string> adapter_files();

/// Freezes the model's weights, and gives the projections of its attentions updates of this rank, which are 0 at first.
/// They count alpha / rank; an alpha of 0 is twice the rank.
void add_updates(LanguageModel<>& model, std::size_t rank, double alpha);

/// Those that are not frozen.
tapegrad::Parameters<float> trained_parameters(LanguageModel<>& model);

/// A copy of the model whose weights have their updates added, and that has none.
Pretrained merged(const Pretrained& pretrained);

/// Writes the updates into a folder. GPT-2's files have the projections to queries, keys and values in one; so have
/// those of its updates, whose rank is then three times as large. Throws std::runtime_error for what cannot be written.
void save_adapter(const Pretrained& pretrained, const std::filesystem::path& folder);

/// Gives the model the updates of a folder, as PEFT or save_adapter has written it. Throws std::runtime_error, naming
/// the file, for one that does not fit, and the setting, for one that asks for more.
void load_adapter(Pretrained& pretrained, const std::filesystem::path& folder);
