/// The options of a run, as they are kept with it.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <string>

#include "options.hpp"

/// What a run that is kept whole was made of: its options, and a fingerprint of the texts that it learns from.
struct KeptRun {
  RunOptions run;
  ModelOptions model;
  examples::TrainingOptions training;
  OutputOptions outputs;
  std::string fingerprint;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KeptRun, run, model, training, outputs, fingerprint)

/// The metadata's entry that tells a run from a model.
inline constexpr const char* run_entry = "language_model --checkpoint";

/// Throws std::runtime_error, naming the file, when it is no run that was kept.
KeptRun read_kept_run(const std::string& path);
