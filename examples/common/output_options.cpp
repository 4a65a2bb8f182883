#include "output_options.hpp"

#include "given.hpp"
#include "program.hpp"

namespace examples {

void add_output_options(CLI::App& app, Given<OutputOptions>& given, std::string& resume) {
  const std::string group = "Keeping and watching the run";
  const auto add = [&](const char* name, std::string OutputOptions::*member, const char* text) {
    given.add(app, name, member, "FILE", some_path(), text)->group(group);
  };
  add("--checkpoint", &OutputOptions::checkpoint, "Keep the whole run here at the end, also after Ctrl-C or SIGTERM");
  given
      .add(app, "--checkpoint-every", &OutputOptions::checkpoint_every, "N", whole_number(1),
           "And so every so many steps")
      ->group(group);
  app.add_option("--resume", resume,
                 "Go on with a run that was kept, to the same weights as if it had\n"
                 "never stopped. Its options come from the file, and it is kept there;\n"
                 "only --steps and the output files may change")
      ->type_name("FILE")
      ->check(some_path())
      ->group(group);
  add("--best", &OutputOptions::best, "Write the model here whenever its validation loss is the lowest");
  add("--log", &OutputOptions::log,
      "Write each step's loss, validation loss, rate, gradient norm and\ntokens a second here, as CSV");
  add("--plot", &OutputOptions::plot, "Draw the log here as a PNG at the end, where gnuplot is installed");
}

void check_output_options(const CLI::App& app, const OutputOptions& options, bool validates) {
  const auto require = [&](const char* option, bool holds, const char* expected) {
    if (app.count(option) > 0 && !holds) throw CLI::ValidationError(option, expected);
  };
  require("--checkpoint-every", !options.checkpoint.empty(), "expected together with --checkpoint");
  require("--best", validates, "expected together with --eval-every");
  require("--plot", !options.log.empty(), "expected together with --log, which it draws");
}

void require_utf8_in_kept(const CLI::App& app, const OutputOptions& options,
                          std::vector<std::pair<std::string, std::string>> others) {
  if (options.checkpoint.empty()) return;
  others.insert(others.end(), {{"--save", options.save},
                               {"--best", options.best},
                               {app.count("--checkpoint") > 0 ? "--checkpoint" : "--resume", options.checkpoint},
                               {"--log", options.log},
                               {"--plot", options.plot}});
  for (const auto& [option, name] : others)
    if (const std::string error = any_text()(name); !error.empty())
      throw CLI::ValidationError(option, error + "; a run is kept with the names of its files");
}

}  // namespace examples
