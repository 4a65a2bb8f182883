/// What a training run has been through, as a table in a file.
#pragma once

#include <cstddef>
#include <fstream>
#include <optional>
#include <string>

namespace examples {

/// A CSV file with a row for each step, which other programs may read while the run goes on.
class TrainingLog {
 public:
  struct Row {
    std::size_t step;  ///< how many were taken
    double loss;
    std::optional<double> validation_loss;  ///< after the step; empty where there was no validation
    double rate, gradient_norm, tokens_per_second;
  };

  /// The log of a run that has taken so many steps. What the file has of them stays; rows of later ones, which a run
  /// that was killed has written, are cut off. Throws std::runtime_error, and leaves the file, when it is there and no
  /// such log, of rows of numbers alone, and when it cannot be written.
  TrainingLog(const std::string& path, std::size_t steps);

  /// Throws std::runtime_error when it cannot be written.
  void add(const Row& row);

 private:
  void require_written();

  std::string path_;
  std::ofstream file_;
};

/// Draws a log's losses to a PNG. Throws std::runtime_error when that fails, as where gnuplot is not installed.
void draw_log(const std::string& log, const std::string& picture);

}  // namespace examples
