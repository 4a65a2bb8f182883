/// Looking at a step of training in a browser: --page.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <optional>
#include <string>

#include "cli.hpp"

namespace examples {

struct StepPageOptions {
  std::string file{};                 ///< to write; empty: none
  std::optional<std::string> text{};  ///< to learn from in that step; none: the first of the test
};

/// Describes --page FILE [TEXT] to the command line. `about` says more of the text, `check` is of it.
void add_page_option(CLI::App& app, StepPageOptions& options, const std::string& group, const std::string& about,
                     const CLI::Validator& check);

/// Refuses --page without a text where no test is read either, with CLI::ValidationError.
void check_page_option(const StepPageOptions& options, bool reads_test);

/// What a page says of its step.
struct ToldOfStep {
  std::string about;  ///< the text, and what was done with it
  tapegrad::PageAxes axes;
};

/// Writes the page of a step that ends in this loss, and says so on standard output. Throws as tapegrad::save_page.
void write_page(const std::string& file, const tapegrad::Tape& tape, const tapegrad::Tensor<float>& loss,
                const ToldOfStep& told);

/// Takes a step of a model without dropout, forward, loss_of(model), and backward, and writes its page. It is a copy of
/// the model that takes it: the gradients of the one that was trained stay as they are.
template <class Model, class LossOf>
void write_step(const std::string& file, Model model, const LossOf& loss_of, const ToldOfStep& told) {
  tapegrad::eval(model);
  tapegrad::named_parameters(model);
  tapegrad::Tape tape({.profile = true, .keep_values = true});
  const tapegrad::Tensor<float> loss = loss_of(model);
  loss.backward();
  write_page(file, tape, loss, told);
}

}  // namespace examples
