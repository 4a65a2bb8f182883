/// Cross-validation.
#pragma once

#include <vector>

#include "data.hpp"
#include "options.hpp"

/// Stratified cross-validation with options.folds folds: trains a new classifier on all texts except one fold's and
/// tests it on this fold. Prints each fold's accuracy as it completes, then their mean and spread, and tables over all
/// tested texts. Returns the exit status. If a signal stops it, reports the completed folds. Throws std::runtime_error
/// for more folds than texts.
int cross_validate(const std::vector<Example>& texts, const Options& options);
