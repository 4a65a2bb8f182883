/// Looking at what a trained model attends to: --explain.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

#include "cli.hpp"

namespace examples {

struct ExplainOptions {
  bool wanted = false;             ///< whether the attention is to be shown
  std::string text;                ///< in which
  std::string name = "attention";  ///< of the files, without what stands after the dot
};

/// Describes --explain and --explain-to to the command line. `check` is of the text.
void add_explain_options(CLI::App& app, ExplainOptions& options, const std::string& group, const CLI::Validator& check);

/// Refuses --explain-to without --explain with CLI::ValidationError.
void check_explain_options(const CLI::App& app);

/// The files that write_attention makes when they are asked for.
std::vector<std::string> attention_files(const ExplainOptions& options);

/// Writes name.csv, name.npy and name.gradients.npy, draws name.png, and says so on standard output. Throws
/// std::runtime_error when a file cannot be written, or, after the others, the picture not be drawn.
void write_attention(const tapegrad::AttentionMap<float>& map, const std::string& name, const std::string& title);

}  // namespace examples
