#include "progress.hpp"

#include <unistd.h>

#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>

namespace examples {

std::string with_commas(std::size_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3;) digits.insert(i -= 3, 1, ',');
  return digits;
}

std::string percent(double share) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << 100 * share << '%';
  return text.str();
}

std::string minutes_and_seconds(double seconds) {
  const auto total = static_cast<std::size_t>(std::lround(seconds));
  std::ostringstream text;
  text << std::setfill('0');
  if (total >= 3600)
    text << total / 3600 << ':' << std::setw(2) << total / 60 % 60;
  else
    text << total / 60;
  text << ':' << std::setw(2) << total % 60;
  return text.str();
}

Progress::Progress(std::size_t steps, std::size_t report_every, std::size_t first)
    : Progress(std::cout, isatty(STDOUT_FILENO) != 0, steps, report_every, first) {}

Progress::Progress(std::ostream& out, bool terminal, std::size_t steps, std::size_t report_every, std::size_t first)
    : out_(out), terminal_(terminal), steps_(steps), report_every_(report_every), first_(first) {}

Progress::~Progress() { end_line(); }

void Progress::end_line() {
  if (line_open_) out_ << std::endl;
  line_open_ = false;
}

void Progress::aside(const std::function<void()>& work) {
  const auto start = Clock::now();
  end_line();
  work();
  other_time_ += Clock::now() - start;
}

void Progress::report(std::size_t step, double loss, std::size_t tokens) {
  tokens_ += tokens;
  const bool stays = step % report_every_ == 0 || step + 1 == steps_;
  const bool due = terminal_ && Clock::now() - shown_ > std::chrono::milliseconds(100);
  if (!stays && !due) return;

  const auto seconds = [](Clock::duration duration) { return std::chrono::duration<double>(duration).count(); };
  const Clock::duration passed = Clock::now() - start_;
  const double elapsed = seconds(passed), training = seconds(passed - other_time_);
  const double left = elapsed * static_cast<double>(steps_ - step - 1) / static_cast<double>(step + 1 - first_);
  std::ostringstream line;  // leaves out_'s format unchanged
  line << "step " << std::setw(static_cast<int>(std::to_string(steps_).size())) << step << " of " << steps_
       << std::fixed << std::setprecision(4) << "   loss " << loss << "  " << std::setw(9)
       << with_commas(static_cast<std::size_t>(static_cast<double>(tokens_) / training)) << " tokens/s   "
       << (step + 1 < steps_ ? minutes_and_seconds(left) + " left" : minutes_and_seconds(elapsed) + " in total");

  constexpr const char* rewrite = "\r\x1b[K";  // return to the start of the line and clear it
  if (terminal_) out_ << rewrite;
  out_ << line.str();
  line_open_ = !stays;
  if (stays) out_ << '\n';
  out_ << std::flush;
  shown_ = Clock::now();
}

}  // namespace examples
