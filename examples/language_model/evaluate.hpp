/// Evaluates a language model on validation and test data.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <vector>

#include "../common/vocabulary.hpp"
#include "../gpt/model.hpp"
#include "../gpt/packed_ids.hpp"

/// Cross entropy of the next ids, ignoring padding. logits: (B, T, vocabulary), next: (B, T)
tapegrad::Tensor<float> loss_of(const tapegrad::Tensor<float>& logits, const tapegrad::IntArray& next,
                                tapegrad::Reduction reduction);

/// The number of predicted characters: all except the first of each sequence.
std::size_t predicted_characters(const std::vector<examples::Ids>& sequences);

/// An evenly spaced, deterministic subset of the sequences with about 25,000 predicted characters, or all of them.
std::vector<examples::Ids> validation_part(const std::vector<examples::Ids>& sequences);

/// The mean of -log p over the predicted characters. Its exponential is the perplexity, the equivalent number of
/// equally likely characters. Runs the model in evaluation mode, then switches it to training mode.
double mean_loss(LanguageModel<>& model, const std::vector<examples::Ids>& sequences);

/// The mean loss of a unigram model with the training data's character frequencies.
double mean_loss_by_frequency(const std::vector<PackedIds>& train, const std::vector<examples::Ids>& test,
                              std::size_t vocabulary);
