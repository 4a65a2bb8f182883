/// Where a model's parameters stand in the files that PyTorch's users have.
#pragma once

#include <string>
#include <vector>

#include "config.hpp"

/// A tensor of the file, and what of the model is in it.
struct StoredParameter {
  std::string name;                     ///< in the file
  std::vector<std::string> parameters;  ///< paths in the model; several stand one after another along the outputs' axis
  bool transposed = false;              ///< (in, out), as GPT-2's Conv1D has its weights
};

/// Those of a model, in its order. The names are those of the whole model: what stands before them in its class, and
/// what files of the model below lack, is prefix_of(family).
std::vector<StoredParameter> layout_of(const Config& config);

/// "transformer." or "model.".
std::string prefix_of(Family family);

/// Names that files of this family may have beside the parameters, in which * stands for any text: buffers, and the
/// weight of a head that is tied.
std::vector<std::string> ignored_names(const Config& config);
