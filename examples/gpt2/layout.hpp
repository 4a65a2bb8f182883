/// Maps a model's parameters to tensors in Hugging Face's files.
#pragma once

#include <string>
#include <vector>

#include "config.hpp"

/// A tensor in the file and its parameters in the model.
struct StoredParameter {
  std::string name;                     ///< name in the file
  std::vector<std::string> parameters;  ///< paths in the model; several are concatenated along the outputs' axis
  bool transposed = false;              ///< (in, out), like the weights of GPT-2's Conv1D
};

/// The stored parameters of a model, in its order, with the names used by the model with a head: they start with
/// prefix_of(family), missing in files of the model without a head.
std::vector<StoredParameter> layout_of(const Config& config);

/// "transformer." or "model.".
std::string prefix_of(Family family);

/// Names of other tensors in files of this family, with * as a wildcard: buffers, and a tied head's weight.
std::vector<std::string> ignored_names(const Config& config);
