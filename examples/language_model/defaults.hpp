/// Default options of language_model: by the data, by the depth of the model, and by the time for training.
#pragma once

#include <cstddef>

#include "../common/training_options.hpp"
#include "../gpt/model.hpp"
#include "options.hpp"

/// Default sizes and rates.
struct Defaults {
  ModelOptions model;
  examples::TrainingOptions training;
};

/// The defaults for a kind of data.
Defaults defaults_for(Source source);

/// Sets the sizes and rates of a model with `depth` blocks, one dial as in nanochat: `depth` heads of width 32, and a
/// learning rate inversely proportional to the width. The blocks are Llama's: RMSNorm, rotary positions, SwiGLU. A
/// text is read in pieces twice as long, half as many per batch.
void set_depth(Defaults& defaults, std::size_t depth, Source source);

/// The depth for a training time on two cores. 4 was measured at two minutes and 6 at ten, on a text of a million
/// characters; 8 is an estimate.
std::size_t best_depth(double minutes);
