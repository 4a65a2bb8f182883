#include "compare.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ostream>

#include "../engine/array/internal/layout.hpp"
#include "internal/number_text.hpp"
#include "internal/table.hpp"

namespace tapegrad::testing {
namespace {

using Verdict = CompareResult::Verdict;
using Row = std::vector<std::string>;  // name, how, shape, largest difference, verdict

std::string text(double number, int digits) { return detail::number_text(number, std::chars_format::general, digits); }

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

void explain(std::ostream& out, const CompareResult& wrong, double tolerance) {
  out << wrong.name;
  if (wrong.shape != wrong.reference_shape)
    out << " has the shape " << to_string(wrong.shape) << ", the reference " << to_string(wrong.reference_shape);
  else
    out << to_string(wrong.index) << " is " << text(wrong.mine, 10) << ", the reference " << text(wrong.reference, 10)
        << "; the tolerance is " << text(tolerance, 6);
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
  double worst = 0;  // relative to the tolerance's scale: a large right element must not hide a wrong one
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
  detail::Table table({}, /*gap=*/3, /*indent=*/2);
  table.add({"", "", "", "largest difference", ""});
  for (const auto& [how, result] : comparison.steps_) table.add(row_of(result, how));
  out << table;
  if (!comparison) explain(out, comparison.steps_.back().result, comparison.tolerance_);
  if (comparison.not_compared_ > 0)
    out << "stopped there; later steps that were not compared: " << comparison.not_compared_ << '\n';
  return out;
}

}  // namespace tapegrad::testing
