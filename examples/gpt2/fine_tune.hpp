/// Going on with the training of a model on a text.
#pragma once

#include <string>

#include "options.hpp"
#include "pretrained.hpp"

/// Trains the model on the first nine tenths of the text that the options name, from where the run to resume was kept
/// or from its beginning, and measures it on the last. Keeps what the options ask for. Gives back the exit status.
int fine_tune(Pretrained& pretrained, const Options& options);

/// Writes what --save asks for into a folder: the updates of --lora, or the whole model, with --merge those added.
void save_result(const Pretrained& pretrained, const Options& options, const std::string& folder);
