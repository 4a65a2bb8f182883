/// What a language model does with what it has learned: it writes, and shows what it attends to.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

#include "../common/vocabulary.hpp"
#include "options.hpp"
#include "writer.hpp"

/// What is wrong with the texts to write on from and to explain is said before the long work, with
/// std::invalid_argument.
void check_use(const Writer& writer, const Options& options);

/// Writes the page of a step on a text that the user gave, or on the first of the tests.
void show_step(const Writer& writer, const examples::StepPageOptions& options, const std::vector<examples::Ids>& tests);

/// Writes lines or a text, and explains one, as the user asked for. The same seed writes the same.
void use(Writer& writer, const Options& options);

/// A line that the model writes, for looking at while it learns. The model evaluates meanwhile, and trains afterwards.
std::string sample_line(Writer& writer, const Options& options);
