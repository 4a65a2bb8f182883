#include "step_page.hpp"

#include <iomanip>
#include <iostream>
#include <sstream>
#include <vector>

#include "interrupt.hpp"
#include "program.hpp"

namespace examples {

void add_page_option(CLI::App& app, StepPageOptions& options, const std::string& group, const std::string& about,
                     const CLI::Validator& check) {
  const auto take = [&options, check](const std::vector<std::string>& given) {
    options.file = given.front();
    if (const std::string error = some_path()(options.file); !error.empty())
      throw CLI::ValidationError("--page", error);
    if (given.size() == 1) return;
    if (const std::string error = check(given.back()); !error.empty()) throw CLI::ValidationError("--page", error);
    options.text = given.back();
  };
  app.add_option_function<std::vector<std::string>>(
         "--page", take,
         "Write a step of training on this text, or on the first of the test,\n"
         "as a page for a browser, with all values and gradients; in training\n"
         "whose loss becomes NaN, the step in which it does. " +
             about)
      ->type_name("FILE [TEXT]")
      ->expected(1, 2)
      ->group(group);
}

void check_page_option(const StepPageOptions& options, bool reads_test) {
  if (!options.file.empty() && !options.text && !reads_test)
    throw CLI::ValidationError("--page", "expected a FILE and a TEXT, as there is no test whose first text to take");
}

void write_page(const std::string& file, const tapegrad::Tape& tape, const tapegrad::Tensor<float>& loss,
                const ToldOfStep& told) {
  write_whole(
      [&] { tapegrad::save_page(tape, file, {.title = "A step of training on " + told.about, .axes = told.axes}); });
  std::ostringstream number;
  number << std::fixed << std::setprecision(4) << loss.item();
  std::cout << "\na step of training on " << told.about << ": loss " << number.str()
            << "\nas a page for a browser: " << printable(file) << '\n';
}

}  // namespace examples
