/// Cross-validation.
#pragma once

#include <vector>

#include "data.hpp"
#include "options.hpp"

/// Learns options.folds times anew, each time from all texts but those of one fold, which test what was learned: a text
/// is in one fold exactly, and each fold has its share of every label. Prints the accuracy of each fold as it ends,
/// then their mean and spread, and the tables over all texts that were tests. Gives back the exit status; when a signal
/// ends it early, the folds before are what counts. Throws std::runtime_error for more folds than texts.
int cross_validate(const std::vector<Example>& texts, const Options& options);
