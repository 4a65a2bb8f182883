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
         "Write a training step on this text, or on the first test text, as a\n"
         "web page with all values and gradients. If the loss becomes NaN in\n"
         "training, the page shows the failed step instead. " +
             about)
      ->type_name("FILE [TEXT]")
      ->expected(1, 2)
      ->group(group);
}

void check_page_option(const StepPageOptions& options, bool reads_test) {
  if (!options.file.empty() && !options.text && !reads_test)
    throw CLI::ValidationError("--page", "expected FILE and TEXT; without test data there is no default text");
}

void write_page(const std::string& file, const tapegrad::Tape& tape, const tapegrad::Tensor<float>& loss,
                const StepDescription& description) {
  write_whole([&] {
    tapegrad::save_page(tape, file, {.title = "A training step on " + description.about, .axes = description.axes});
  });
  std::ostringstream number;
  number << std::fixed << std::setprecision(4) << loss.item();
  std::cout << "\na training step on " << description.about << ": loss " << number.str()
            << "\nweb page of the step: " << printable(file) << '\n';
}

}  // namespace examples
