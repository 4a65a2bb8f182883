/// What a model does with texts: it writes on, and shows what it attends to and how it takes a step.
#pragma once

#include <string>

#include "options.hpp"
#include "pretrained.hpp"

/// The text that the options ask to be written, on standard output as it comes: valid UTF-8 at every moment. The same
/// seed writes the same. The model must be switched to evaluation.
void write_on(const Pretrained& pretrained, const WritingOptions& options, std::uint64_t seed);

/// Shows how the model comes to what it expects in a text: the attention of every head, and how the logarithm of the
/// text's probability grows with each weight.
void explain(const Pretrained& pretrained, const examples::ExplainOptions& options);

/// Writes the page of a step on a text.
void show_step(const Pretrained& pretrained, const examples::StepPageOptions& options);

/// Prints the ids of a text, apart by spaces.
void print_tokens(const Tokenizer& tokenizer, const std::string& file);

/// Prints the perplexity of a text by the model of a folder. Throws std::runtime_error for one of fewer than two
/// tokens, and as require_finite.
void print_score(const Pretrained& pretrained, const std::string& folder, const std::string& file);

/// What is wrong with the texts to write on from, to explain and to step on is said before the long work, with
/// std::invalid_argument.
void check_texts(const Description& description, const Options& options);
