/// The option --explain: shows a trained model's attention.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

#include "cli.hpp"

namespace examples {

struct ExplainOptions {
  bool wanted = false;             ///< true if --explain was given
  std::string text;                ///< text to explain
  std::string name = "attention";  ///< files' name without extension
};

/// Adds --explain and --explain-to to the command line. `check` validates the text.
void add_explain_options(CLI::App& app, ExplainOptions& options, const std::string& group, const CLI::Validator& check);

/// Throws CLI::ValidationError if --explain-to is given without --explain.
void check_explain_options(const CLI::App& app);

/// The files write_attention will create; none without --explain.
std::vector<std::string> attention_files(const ExplainOptions& options);

/// Writes name.csv, name.npy, name.gradients.npy and the picture name.png, and prints their names. Throws
/// std::runtime_error if a file cannot be written. The picture comes last, so its failure leaves the other files.
void write_attention(const tapegrad::AttentionMap<float>& map, const std::string& name, const std::string& title);

/// The same of all layers, their heads in order. weights: (1, heads, T, S) per layer, with gradients; queries: the T
/// attending tokens; keys: the S attended ones.
void write_attention(const std::vector<tapegrad::Tensor<float>>& weights, const std::vector<std::string>& queries,
                     const std::vector<std::string>& keys, const std::string& name, const std::string& title);

}  // namespace examples
