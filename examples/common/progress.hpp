/// How far long work has come.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>

namespace examples {

/// "1,234,567"
std::string with_commas(std::size_t number);

/// "1:05", "2:03:00"
std::string minutes_and_seconds(double seconds);

/// Reports on training: a line every so many steps and, on a terminal, one line between them that is kept up to date.
///
///     step 1200 of 8000   loss 0.6123   412,000 tokens/s   0:24 left
class Progress {
 public:
  /// Of the steps `first`, ..., `steps` - 1. Writes to standard output, which may be a terminal or not.
  Progress(std::size_t steps, std::size_t report_every, std::size_t first = 0);
  Progress(std::ostream& out, bool terminal, std::size_t steps, std::size_t report_every, std::size_t first = 0);
  /// Ends the line that is kept up to date.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Steps are numbered from 0. tokens: how many the step has worked on.
  void report(std::size_t step, double loss, std::size_t tokens);

  /// Does other work, which may print, between two steps: it counts in the time that is left, not in the tokens a
  /// second.
  void aside(const std::function<void()>& work);

 private:
  using Clock = std::chrono::steady_clock;
  void end_line();

  std::ostream& out_;
  bool terminal_;
  std::size_t steps_, report_every_, first_, tokens_ = 0;
  Clock::time_point start_ = Clock::now(), shown_;
  Clock::duration aside_{};
  bool line_open_ = false;
};

}  // namespace examples
