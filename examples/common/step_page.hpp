/// The option --page: shows a training step in a browser.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <optional>
#include <string>

#include "cli.hpp"

namespace examples {

struct StepPageOptions {
  std::string file{};                 ///< output file; empty: none
  std::optional<std::string> text{};  ///< text of the step; default: the first test text
};

/// Adds --page FILE [TEXT] to the command line. `about` extends the help with details on TEXT, `check` validates it.
void add_page_option(CLI::App& app, StepPageOptions& options, const std::string& group, const std::string& about,
                     const CLI::Validator& check);

/// Throws CLI::ValidationError if --page has no text and the program reads no test data.
void check_page_option(const StepPageOptions& options, bool reads_test);

/// The description of a page's step.
struct StepDescription {
  std::string about;  ///< the text and its role, for the title
  tapegrad::PageAxes axes;
};

/// Writes the page of a step with this loss and prints the file's name. Throws like tapegrad::save_page.
void write_page(const std::string& file, const tapegrad::Tape& tape, const tapegrad::Tensor<float>& loss,
                const StepDescription& description);

/// Runs loss_of(model) and its backward pass without dropout and writes the page. `model` is a copy, so the trained
/// model's gradients do not change.
template <class Model, class LossOf>
void write_step(const std::string& file, Model model, const LossOf& loss_of, const StepDescription& description) {
  tapegrad::eval(model);
  tapegrad::named_parameters(model);
  tapegrad::Tape tape({.profile = true, .keep_values = true});
  const tapegrad::Tensor<float> loss = loss_of(model);
  loss.backward();
  write_page(file, tape, loss, description);
}

}  // namespace examples
