/// How well a language model knows texts that it has not learned from.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <vector>

#include "../common/vocabulary.hpp"
#include "../gpt/model.hpp"
#include "../gpt/packed_ids.hpp"

/// -log p of each id that follows, summed or averaged; padding does not count. logits: (B, T, vocabulary), next: (B, T)
tapegrad::Tensor<float> loss_of(const tapegrad::Tensor<float>& logits, const tapegrad::IntArray& next,
                                tapegrad::Reduction reduction);

/// How many characters of the sequences follow others.
std::size_t predicted_characters(const std::vector<examples::Ids>& sequences);

/// Some of the sequences, evenly spread over them, the same each time: as many as it takes to predict some 25,000
/// characters, or all.
std::vector<examples::Ids> validation_part(const std::vector<examples::Ids>& sequences);

/// The mean of -log p over the characters that follow others. Its exponential is the perplexity: the model is as unsure
/// as if it had to choose among so many that are equally likely. The model evaluates meanwhile, and trains afterwards.
double mean_loss(LanguageModel<>& model, const std::vector<examples::Ids>& sequences);

/// The same of a model that knows only how often each character is in the sequences it learned from.
double mean_loss_by_frequency(const std::vector<PackedIds>& train, const std::vector<examples::Ids>& test,
                              std::size_t vocabulary);
