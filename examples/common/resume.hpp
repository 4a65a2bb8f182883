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

/// Takes the program's options from the run to resume, with members like those of GivenRun. Only output files may
/// change, and --steps may increase. Throws CLI::ValidationError for other differences, and like Given::check.
template <class Options, class Run, class Model, class SavedRun>
void resume(const CLI::App& app, Options& options, const GivenRun<Run, Model>& given, const SavedRun& kept) {
  given.run.check(options.resume, kept.run);
  given.model.check(options.resume, kept.model);
  given.training.check(options.resume, kept.training);
  given.outputs.check(options.resume, kept.outputs);
  const std::size_t steps = given.training.value_or(kept.training).steps;
  std::vector<std::string> contradicting = given.run.contradicting(kept.run);
  for (const auto& more : {given.model.contradicting(kept.model), given.training.contradicting(kept.training)})
    contradicting.insert(contradicting.end(), more.begin(), more.end());
  if (steps > kept.training.steps) std::erase(contradicting, "--steps");
  if (app.count("--seed") > 0 && given.seed != kept.run.seed) contradicting.push_back("--seed");
  if (!contradicting.empty())
    throw CLI::ValidationError(contradicting.front(),
                               "expected the same value as in the resumed run; only --steps may increase");
  options.run = kept.run;
  options.model = kept.model;
  options.training = kept.training;
  options.training.steps = steps;
  options.outputs = kept.outputs;
  options.outputs.checkpoint = options.resume;
  options.outputs = given.outputs.value_or(options.outputs);
}

}  // namespace examples
