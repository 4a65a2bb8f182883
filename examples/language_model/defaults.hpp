/// Default options of language_model: by the data, by the depth of the model, and by the time for training.
#pragma once

#include <cstddef>
#include <optional>

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

/// The settings for a training time on two cores. The context and the weight decay are those for a text.
struct Budget {
  std::size_t depth, context;
  double dropout = 0;
  std::optional<double> weight_decay{};  ///< if not the default
};

/// The settings with the lowest loss among those measured at 2, 10 and 60 minutes on a text of a million characters.
Budget budget_for(double minutes);
