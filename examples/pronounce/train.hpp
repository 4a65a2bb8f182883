/// A training run: training, checkpointing and resuming.
#pragma once

#include <string>

#include "options.hpp"
#include "pronouncer.hpp"

namespace pronounce {

/// Trains the model from the start or from the checkpoint to resume, until all steps are done or the user stops it.
/// Validates on a part of the test pairs. Writes the requested output files. Returns the exit status.
int train(Pronouncer& pronouncer, const Pairs& pairs, const PronounceOptions& options, const std::string& fingerprint);

/// The loss of targets given their sources. Padding is ignored.
tapegrad::Tensor<float> loss_of(const EncoderDecoder<>& model, const examples::Padded& sources,
                                const examples::Padded& targets, double label_smoothing, tapegrad::Reduction reduction);

}  // namespace pronounce
