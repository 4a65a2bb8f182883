#include "compare.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>

namespace tapegrad::testing {
namespace {

using Verdict = CompareResult::Verdict;
using Row = std::array<std::string, 5>;  // name, how, shape, largest difference, verdict

constexpr std::size_t kGap = 3;

std::string text(double number, int digits) {
  std::ostringstream out;
  out << std::setprecision(digits) << number;
  return out.str();
}

std::string shape_text(const CompareResult& result) {
  const std::string shape = to_string(result.shape);
  return result.shape == result.reference_shape ? shape : shape + " for " + to_string(result.reference_shape);
}

std::string difference_text(const CompareResult& result) {
  if (result.verdict == Verdict::exact) return "0";
  if (result.shape != result.reference_shape) return "-";
  return text(result.difference, 2) + " at " + to_string(result.index);
}

Row row_of(const CompareResult& result, const std::string& how) {
  const char* verdict = result.verdict == Verdict::exact ? "exact" : result ? "close" : "WRONG";
  return {result.name, how, shape_text(result), difference_text(result), verdict};
}

// How many characters a text in UTF-8 has.
std::size_t width(const std::string& text) {
  const auto starts_character = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

void print_table(std::ostream& out, const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      if (widths[c] > 0) line += row[c] + std::string(widths[c] - width(row[c]) + kGap, ' ');
    out << "  " << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
}

void explain(std::ostream& out, const CompareResult& wrong, double tolerance) {
  out << wrong.name;
  if (wrong.shape != wrong.reference_shape)
    out << " has the shape " << to_string(wrong.shape) << ", the reference " << to_string(wrong.reference_shape);
  else
    out << to_string(wrong.index) << " is " << text(wrong.mine, 10) << ", the reference " << text(wrong.reference, 10)
        << "; the tolerance is " << tolerance;
  out << '\n';
}

}  // namespace

CompareResult compare(const std::string& name, const Array<double>& mine, const Array<double>& reference,
                      double tolerance) {
  CompareResult result{.name = name, .shape = mine.shape(), .reference_shape = reference.shape()};
  if (result.shape != result.reference_shape) {
    result.verdict = Verdict::wrong;
    return result;
  }
  double worst = 0;  // in units of the tolerance's scale, so that a wrong element is never hidden by a large right one
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const double a = mine.data()[i], b = reference.data()[i];
    if (a == b) continue;  // infinities too
    const double difference = std::abs(a - b), relative = difference / std::max(1.0, std::abs(b));
    if (relative <= worst) continue;
    worst = relative;
    result.difference = difference;
    result.index = detail::index_of(i, mine.shape());
    result.mine = a;
    result.reference = b;
    result.verdict = relative <= tolerance ? Verdict::close : Verdict::wrong;
    if (std::isnan(relative)) break;
  }
  return result;
}

std::ostream& operator<<(std::ostream& out, const CompareResult& result) {
  const Row row = row_of(result, "");
  out << row[0] << "   " << row[2] << "   " << row[3] << "   " << row[4];
  if (!result && result.shape == result.reference_shape)
    out << ": " << text(result.mine, 10) << ", the reference " << text(result.reference, 10);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Comparison& comparison) {
  std::vector<Row> rows{{"", "", "", "largest difference", ""}};
  for (const auto& [how, result] : comparison.steps_) rows.push_back(row_of(result, how));
  print_table(out, rows);
  if (!comparison) explain(out, comparison.steps_.back().result, comparison.tolerance_);
  if (comparison.not_compared_ > 0)
    out << "stopped there; later steps that were not compared: " << comparison.not_compared_ << '\n';
  return out;
}

}  // namespace tapegrad::testing
