#include "defaults.hpp"

#include <stdexcept>

using examples::Decay;
using examples::OptimizerKind;
using tapegrad::Activation;

Defaults defaults_for(Source source) {
  switch (source) {
    case Source::words:
    case Source::lines:
      return {{.layers = 2, .heads = 4, .width = 64, .context = 32, .positions = Positions::learned, .tie = true},
              {.steps = 5000,
               .batch_size = 64,
               .optimizer = OptimizerKind::adamw,
               .lr = 4e-3,
               .warmup = 100,
               .decay = Decay::cosine,
               .beta2 = 0.99,
               .weight_decay = 0.1,
               .clip = 1,
               .eval_every = 1000}};
    case Source::text:
      return {{.layers = 4, .heads = 4, .width = 128, .context = 64, .positions = Positions::learned, .tie = true},
              {.steps = 2000,
               .batch_size = 12,
               .optimizer = OptimizerKind::adamw,
               .lr = 1e-3,
               .lr_floor = 1e-4,
               .warmup = 100,
               .decay = Decay::cosine,
               .beta2 = 0.99,
               .weight_decay = 0.1,
               .clip = 1,
               .eval_every = 500}};
    case Source::random:  // shows that a model can memorize
      return {{.layers = 0, .heads = 1, .width = 512, .context = 100},
              {.steps = 1000, .batch_size = 32, .lr = 0.01, .decay = Decay::none}};
  }
  throw std::logic_error("language_model: a source without defaults");
}

void set_depth(Defaults& defaults, std::size_t depth, Source source) {
  ModelOptions& model = defaults.model;
  const double wider = 32 * double(depth) / double(model.width);
  model.layers = model.heads = depth;
  model.width = 32 * depth;
  model.feed_forward = 88 * depth;  // 8 / 3 of the width, rounded up to whole vectors
  model.norm = Norm::rms;
  model.positions = Positions::rotary;
  model.activation = Activation::swiglu;
  model.bias = false;
  if (source == Source::text) {
    model.context *= 2;
    defaults.training.batch_size /= 2;
  }
  defaults.training.lr /= wider;
  defaults.training.lr_floor /= wider;
}

Budget budget_for(double minutes) {
  if (minutes < 5) return {.depth = 4, .context = 128};
  if (minutes < 30) return {.depth = 6, .context = 128};
  return {.depth = 6, .context = 256, .dropout = 0.2, .weight_decay = 1};  // against overfitting
}
