/// Uses a trained model: pronounces words, explains its attention and writes a step's page.
#pragma once

#include <vector>

#include "options.hpp"
#include "pronouncer.hpp"

namespace pronounce {

/// Checks the texts of --pronounce, --explain and --page before long work. Throws std::invalid_argument.
void check_use(const Pronouncer& pronouncer, const PronounceOptions& options);

/// Writes the page if requested, of a step on the user's text with its likeliest target, or on the first test pair;
/// prints the targets of the words, and explains one.
void use(Pronouncer& pronouncer, const PronounceOptions& options, const std::vector<Pair>& test);

}  // namespace pronounce
