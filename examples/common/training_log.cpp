#include "training_log.hpp"

#include <tapegrad/inspect/gnuplot.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "printable.hpp"

namespace examples {

namespace {

constexpr const char* header = "step,loss,validation_loss,rate,gradient_norm,tokens_per_second";
constexpr std::size_t columns = 6;

template <class Number> bool parses(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// The step of a log line, or nothing if the line is not a row of numbers. draw_log passes only such lines to gnuplot.
std::optional<std::size_t> step_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line)
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  std::size_t step = 0;
  double number = 0;
  const bool is_row = cells.size() == columns && parses(cells.front(), step) &&
                      std::all_of(cells.begin() + 1, cells.end(),
                                  [&](const std::string& cell) { return cell.empty() || parses(cell, number); });
  return is_row ? std::optional(step) : std::nullopt;
}

/// The number of bytes of the header and the complete rows up to step `steps`.
std::size_t size_up_to(const std::string& path, std::size_t steps) {
  const auto require_log = [&](bool is_log) {
    if (!is_log) throw std::runtime_error(printable(path) + ": expected a training log to append to, got another file");
  };
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::size_t size = 0;
  for (; std::getline(file, line) && !file.eof(); size += line.size() + 1) {  // a line without an end is incomplete
    if (size == 0) {
      require_log(line == header);
      continue;
    }
    const auto step = step_of(line);
    require_log(step.has_value());
    if (*step > steps) break;
  }
  require_log(size > 0 || !std::filesystem::exists(path) || std::filesystem::file_size(path) == 0);
  return size;
}

}  // namespace

TrainingLog::TrainingLog(const std::string& path, std::size_t steps) : path_(path) {
  const std::size_t size = size_up_to(path, steps);
  if (size > 0) std::filesystem::resize_file(path, size);
  file_.open(path, std::ios::binary | std::ios::app);
  file_.precision(std::numeric_limits<float>::max_digits10);
  if (size == 0) file_ << header << std::endl;
  require_written();
}

void TrainingLog::add(const Row& row) {
  std::ostringstream line;
  line.copyfmt(file_);
  line << row.step << ',' << row.loss << ',';
  if (row.validation_loss) line << *row.validation_loss;
  line << ',' << row.rate << ',' << row.gradient_norm << ',' << static_cast<std::size_t>(row.tokens_per_second) << '\n';
  file_ << line.str() << std::flush;  // in one write: readers see only complete rows
  require_written();
}

void TrainingLog::require_written() {
  if (!file_) throw std::runtime_error(printable(path_) + ": cannot be written: " + std::strerror(errno));
}

void draw_log(const std::string& log, const std::string& picture) {
  std::ifstream file(log);
  std::stringstream rows;
  rows << file.rdbuf();
  const std::string script =
      "set terminal pngcairo noenhanced font 'DejaVu Sans,10' size 800,480\n"
      "set datafile separator ','\nset key autotitle columnhead\nset grid\nset xlabel 'steps'\nset ylabel 'loss'\n"
      "$log << end\n" +
      rows.str() +
      "end\n"
      "plot $log using 1:2 with lines lc rgb '#9ecae1' title 'batch', \\\n"
      "     $log using 1:(valid(3) ? $3 : NaN) with linespoints lw 2 pt 7 lc rgb '#08306b' title 'validation'\n";
  tapegrad::save_plot(script, picture, "draw_log");
}

}  // namespace examples
