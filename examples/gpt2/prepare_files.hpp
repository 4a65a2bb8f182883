/// Checks the user's file names before long work.
#pragma once

#include "options.hpp"

/// Throws std::runtime_error, naming the file or folder, if an input cannot be read, an output cannot be written or
/// would overwrite an input or another output, or an output folder has files that do not belong to the saved model.
void prepare_files(const Gpt2Options& options);
