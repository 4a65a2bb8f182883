/// A training run: training, checkpointing and resuming.
#pragma once

#include <cstddef>
#include <vector>

#include "../common/vocabulary.hpp"
#include "../gpt/packed_ids.hpp"
#include "options.hpp"
#include "writer.hpp"

/// Encoded training and validation data.
struct Texts {
  std::vector<PackedIds> train;         ///< lines, or one running text to be cut into pieces
  std::vector<examples::Ids> validate;  ///< validation sequences
};

/// The number of training steps that fit into so many minutes with their validations. Times a few steps on a copy of
/// the writer's model; the default generator is unchanged afterwards.
std::size_t steps_within(double minutes, const Writer& writer, const Texts& texts, const LanguageModelOptions& options);

/// Trains the writer's model from the start or from the checkpoint to resume, until all steps are done or the user
/// stops it. Writes the requested output files. Returns the exit status.
int train(Writer& writer, const Texts& texts, const LanguageModelOptions& options, const std::string& fingerprint);
