/// Uses a trained model: generates text, explains its attention and writes a step's page.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

#include "../common/vocabulary.hpp"
#include "options.hpp"
#include "writer.hpp"

/// Checks the texts of --prompt, --explain and --page before long work. Throws std::invalid_argument.
void check_use(const Writer& writer, const LanguageModelOptions& options);

/// Writes the page of a step on the user's text, or on the first test sequence.
void show_step(const Writer& writer, const examples::StepPageOptions& options, const std::vector<examples::Ids>& tests);

/// Generates lines or text, and explains a text if requested. Deterministic for a given seed.
void use(Writer& writer, const LanguageModelOptions& options);

/// A generated line to watch training. Runs the model in evaluation mode, then switches it to training mode.
std::string sample_line(Writer& writer, const LanguageModelOptions& options);
