/// Uses a model: generates text, explains its attention, writes a step's page, and scores texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"
#include "pretrained.hpp"

/// Generates the requested text and prints it token by token, always as valid UTF-8. Deterministic for a given seed.
/// The model must be in evaluation mode.
void write_on(const Pretrained& pretrained, const WritingOptions& options, std::uint64_t seed);

/// Writes every head's attention weights on a text and the gradients of its log probability with respect to them.
void explain(const Pretrained& pretrained, const examples::ExplainOptions& options);

/// Writes the page of a step on a text's ids, truncated to the context and the next token. `about` names the text.
void show_step(const Pretrained& pretrained, const std::string& file, std::vector<std::int64_t> ids, std::string about);

/// Prints the ids of a text, separated by spaces.
void print_tokens(const Tokenizer& tokenizer, const std::string& file);

/// Prints the perplexity of a text under the folder's model. Throws std::runtime_error for fewer than two tokens, and
/// like require_finite.
void print_score(const Pretrained& pretrained, const std::string& folder, const std::string& file);

/// Checks the texts of --prompt, --explain and --page before long work. Throws std::invalid_argument.
void check_texts(const Description& description, const Gpt2Options& options);
