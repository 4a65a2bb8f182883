#include "output_options.hpp"

#include "given.hpp"
#include "program.hpp"

namespace examples {

void add_output_options(CLI::App& app, Given<OutputOptions>& given, std::string& resume) {
  const std::string group = "Saving and monitoring the run";
  const auto add = [&](const char* name, std::string OutputOptions::*member, const char* text) {
    given.add(app, name, member, "FILE", some_path(), text)->group(group);
  };
  add("--checkpoint", &OutputOptions::checkpoint,
      "Save the complete run here at the end, also after Ctrl-C or SIGTERM");
  given
      .add(app, "--checkpoint-every", &OutputOptions::checkpoint_every, "N", whole_number(1),
           "Also save it every N steps")
      ->group(group);
  app.add_option("--resume", resume,
                 "Resume a saved run; the final weights are the same as without the\n"
                 "interruption. Its options come from the file, where it is saved\n"
                 "again; only --steps and the paths of data and output files may\n"
                 "change")
      ->type_name("FILE")
      ->check(some_path())
      ->group(group);
  add("--best", &OutputOptions::best, "Save the model here whenever its validation loss reaches a new minimum");
  add("--log", &OutputOptions::log,
      "Write each step's loss, validation loss, learning rate, gradient norm\nand tokens per second here, as CSV");
  add("--plot", &OutputOptions::plot, "Plot the log here as a PNG at the end, if gnuplot is installed");
}

void check_output_options(const CLI::App& app, const OutputOptions& options, bool validates) {
  const auto require = [&](const char* option, bool holds, const char* expected) {
    if (app.count(option) > 0 && !holds) throw CLI::ValidationError(option, expected);
  };
  require("--checkpoint-every", !options.checkpoint.empty(), "requires --checkpoint");
  require("--best", validates, "requires --eval-every");
  require("--plot", !options.log.empty(), "requires --log, the data to plot");
}

void require_utf8_in_saved(const CLI::App& app, const OutputOptions& options,
                           std::vector<std::pair<std::string, std::string>> others) {
  if (options.checkpoint.empty()) return;
  others.insert(others.end(), {{"--save", options.save},
                               {"--best", options.best},
                               {app.count("--checkpoint") > 0 ? "--checkpoint" : "--resume", options.checkpoint},
                               {"--log", options.log},
                               {"--plot", options.plot}});
  for (const auto& [option, name] : others)
    if (const std::string error = any_text()(name); !error.empty())
      throw CLI::ValidationError(option, error + "; checkpoints store file names as UTF-8");
}

void prepare_outputs(const OutputOptions& options, const StepPageOptions& page, const ExplainOptions& explain,
                     const std::string& resume, std::vector<std::string> inputs) {
  std::vector<std::string> outputs = attention_files(explain);
  outputs.insert(outputs.end(), {options.save, options.best, options.checkpoint, options.log, options.plot, page.file});
  if (resume != options.checkpoint) inputs.push_back(resume);
  prepare_outputs(outputs, inputs);
}

void write_nothing(OutputOptions& options, StepPageOptions& page) {
  for (std::string* const file : {&options.save, &options.best, &options.log, &options.plot, &page.file}) file->clear();
}

}  // namespace examples
