/// Options of a run that a checkpoint can continue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "given.hpp"
#include "output_options.hpp"
#include "training_options.hpp"

namespace examples {

/// The options given by the user, for a program with its own RunOptions (data and seed) and ModelOptions.
template <class RunOptions, class ModelOptions> struct GivenRun {
  Given<RunOptions> run;
  Given<ModelOptions> model;
  Given<TrainingOptions> training;
  Given<OutputOptions> outputs;
  std::uint64_t seed = 0;
};

/// A part of a program's options: the given ones, those of the run to resume, and the program's.
template <class Options> struct ResumedPart {
  const Given<Options>& given;
  const Options& saved;
  Options& options;
};

/// Takes a program's options from the run to resume. `given` has the members training, outputs and seed of GivenRun;
/// `saved` and `options` have training and outputs; `parts` are the program's own. The paths of outputs and of the data
/// may change, and --steps may increase; the program compares the data with the run's. Throws CLI::ValidationError for
/// other differences, and like Given::check.
template <class Options, class AllGiven, class SavedRun, class... Parts>
void resume(const CLI::App& app, Options& options, const AllGiven& given, const SavedRun& saved,
            std::uint64_t saved_seed, const ResumedPart<Parts>&... parts) {
  const ResumedPart<TrainingOptions> training{given.training, saved.training, options.training};
  std::vector<std::string> contradicting;
  const auto take = [&](const auto& part) {
    part.given.check(options.resume, part.saved);
    const std::vector<std::string> more = part.given.contradicting(part.saved);
    contradicting.insert(contradicting.end(), more.begin(), more.end());
    part.options = part.given.value_or(part.saved);
  };
  (take(parts), ...);
  take(training);
  given.outputs.check(options.resume, saved.outputs);
  if (options.training.steps > saved.training.steps) std::erase(contradicting, "--steps");
  for (const char* path : {"--data", "--train"}) std::erase(contradicting, path);
  if (app.count("--seed") > 0 && given.seed != saved_seed) contradicting.push_back("--seed");
  if (!contradicting.empty())
    throw CLI::ValidationError(contradicting.front(),
                               "expected the same value as in the resumed run; only --steps may increase");
  options.outputs = saved.outputs;
  options.outputs.checkpoint = options.resume;
  options.outputs = given.outputs.value_or(options.outputs);
}

/// The same for options with the parts `run`, which has the seed, and `model`.
template <class Options, class Run, class Model, class SavedRun>
void resume(const CLI::App& app, Options& options, const GivenRun<Run, Model>& given, const SavedRun& saved) {
  resume(app, options, given, saved, saved.run.seed, ResumedPart<Run>{given.run, saved.run, options.run},
         ResumedPart<Model>{given.model, saved.model, options.model});
}

}  // namespace examples
