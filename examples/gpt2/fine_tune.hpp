/// Fine-tunes a model on a text.
#pragma once

#include <string>

#include "options.hpp"
#include "pretrained.hpp"

/// Trains the model on the first nine tenths of the options' text, from the start or from the checkpoint to resume, and
/// validates it on the last tenth. Writes the requested output files. Returns the exit status.
int fine_tune(Pretrained& pretrained, const Gpt2Options& options);

/// Saves into a folder: the updates of --lora, or the whole model, with the updates merged if --merge is given.
void save_result(const Pretrained& pretrained, const Gpt2Options& options, const std::string& folder);
