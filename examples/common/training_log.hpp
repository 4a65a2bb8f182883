/// A training run's log file.
#pragma once

#include <cstddef>
#include <fstream>
#include <optional>
#include <string>

namespace examples {

/// A CSV file with one row per step. Other programs may read it during the run.
class TrainingLog {
 public:
  struct Row {
    std::size_t step;  ///< number of steps so far
    double loss;
    std::optional<double> validation_loss;  ///< after the step; empty without a validation
    double rate, gradient_norm, tokens_per_second;
  };

  /// Opens or creates the log of a run at step `steps`. Keeps existing rows up to this step and truncates later ones,
  /// left by a killed run. Throws std::runtime_error and leaves the file unchanged if it exists and is not a log with
  /// rows of numbers only; also throws if the file cannot be written.
  TrainingLog(const std::string& path, std::size_t steps);

  /// Throws std::runtime_error if the row cannot be written.
  void add(const Row& row);

 private:
  void require_written();

  std::string path_;
  std::ofstream file_;
};

/// Plots a log's losses to a PNG. Throws std::runtime_error on failure, e.g. without gnuplot.
void draw_log(const std::string& log, const std::string& picture);

}  // namespace examples
