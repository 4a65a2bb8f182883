/// A run of training: learning from texts, keeping what it takes to go on, and going on.
#pragma once

#include <vector>

#include "../common/vocabulary.hpp"
#include "../gpt/packed_ids.hpp"
#include "options.hpp"
#include "writer.hpp"

/// What a run learns from and validates with.
struct Texts {
  std::vector<PackedIds> train;         ///< the ids of lines, or of one long text, from which it learns pieces
  std::vector<examples::Ids> validate;  ///< what it validates with
};

/// Trains the writer's model from where the run to resume was kept, or from its beginning, until it has taken all steps
/// or the user stops it. Keeps what the options ask for. Gives back the exit status.
int train(Writer& writer, const Texts& texts, const Options& options, const std::string& fingerprint);
