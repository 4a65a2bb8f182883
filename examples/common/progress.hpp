/// Progress reports.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>

namespace examples {

/// "1,234,567"
std::string with_commas(std::size_t number);

/// "76.5%" of 0.765
std::string percent(double share);

/// "1:05", "2:03:00"
std::string minutes_and_seconds(double seconds);

/// Prints training progress: a line every `report_every` steps and, on a terminal, a continuously updated line.
///
///     step 1200 of 8000   loss 0.6123   412,000 tokens/s   0:24 left
class Progress {
 public:
  /// For the steps `first`, ..., `steps` - 1. Writes to standard output and detects if it is a terminal.
  Progress(std::size_t steps, std::size_t report_every, std::size_t first = 0);
  Progress(std::ostream& out, bool terminal, std::size_t steps, std::size_t report_every, std::size_t first = 0);
  /// Ends the updated line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// step: counted from 0. tokens: number of tokens in this step.
  void report(std::size_t step, double loss, std::size_t tokens);

  /// Runs other work between steps, e.g. validation. Its time counts in the time left, not in the tokens per second.
  void aside(const std::function<void()>& work);

 private:
  using Clock = std::chrono::steady_clock;
  void end_line();

  std::ostream& out_;
  bool terminal_;
  std::size_t steps_, report_every_, first_, tokens_ = 0;
  Clock::time_point start_ = Clock::now(), shown_;
  Clock::duration other_time_{};
  bool line_open_ = false;
};

}  // namespace examples
