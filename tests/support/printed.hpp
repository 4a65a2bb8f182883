/// A tutorial's output, read back as numbers.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "run_example.hpp"

using Numbers = tapegrad::Array<double>;

/// A line in a table of comparisons.
struct Compared {
  std::string name, shape;
  double difference;
  std::string verdict;
};

class Printed {
 public:
  explicit Printed(const std::string& text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines_.push_back(line);
  }

  /// The section under the title with this number.
  Printed section(int number) const {
    const auto starts = [&](int n) {
      const auto is_title = [&](const std::string& line) { return line.starts_with(std::to_string(n) + ". "); };
      return std::find_if(lines_.begin(), lines_.end(), is_title);
    };
    REQUIRE(starts(number) != lines_.end());
    Printed part("");
    part.lines_.assign(starts(number), starts(number + 1));
    return part;
  }

  bool has(const std::string& words) const {
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](const std::string& line) { return line.find(words) != line.npos; });
  }

  /// The array with this name and shape.
  Numbers array(const std::string& name, const tapegrad::Shape& shape) const {
    Numbers x(shape);
    const std::size_t axes = shape.size(), columns = axes > 0 ? shape[axes - 1] : 1,
                      rows = axes > 1 ? shape[axes - 2] : 1;
    CAPTURE(name);
    auto [line, left, block_columns] = find(name + ' ' + tapegrad::to_string(shape));
    for (std::size_t matrix = 0; matrix * rows * columns < x.size(); matrix += block_columns.size()) {
      if (axes > 2)
        block_columns.assign(static_cast<std::size_t>(std::count(line->begin(), line->end(), '[')), columns);
      std::size_t all = 0;
      for (const std::size_t width : block_columns) all += width;
      for (std::size_t row = 0; row < rows; ++line) {
        REQUIRE(line != lines_.end());
        const std::vector<double> numbers = last_numbers(*line, all);
        if (numbers.empty()) continue;  // a heading
        for (std::size_t block = 0; block < (axes > 2 ? block_columns.size() : 1); ++block)
          for (std::size_t column = 0; column < columns; ++column)
            x.data()[((matrix + block) * rows + row) * columns + column] = numbers.at(left + block * columns + column);
        ++row;
      }
      if (axes <= 2) break;
    }
    return x;
  }

  /// All comparisons: a name, optionally how both were computed, the shape, the difference, the verdict.
  std::vector<Compared> comparisons() const {
    std::vector<Compared> found;
    for (const std::string& line : lines_) {
      const std::vector<std::string> parts = split_at_gaps(line);
      const std::size_t count = parts.size();
      if (count < 4 || (parts.back() != "exact" && parts.back() != "close" && parts.back() != "WRONG")) continue;
      found.push_back({parts[0], parts[count - 3], std::strtod(parts[count - 2].c_str(), nullptr), parts[count - 1]});
    }
    return found;
  }

 private:
  struct Place {
    std::vector<std::string>::const_iterator line;  // after the heading
    std::size_t left;                               // how many numbers precede the array's in a line
    std::vector<std::size_t> block_columns;         // the columns of all arrays printed next to each other
  };

  Place find(const std::string& heading) const {
    for (auto line = lines_.begin(); line != lines_.end(); ++line) {
      std::optional<std::size_t> left;
      std::size_t all = 0;
      std::vector<std::size_t> block_columns;
      for (const std::string& part : split_at_gaps(*line)) {
        if (part == heading) left = all;
        block_columns.push_back(columns_of(part));
        all += block_columns.back();
      }
      if (left) return {line + 1, *left, block_columns};
    }
    FAIL("nothing is printed under the heading '" << heading << "'");
    return {};
  }

  /// The last number of a heading's shape, 1 in "L ()".
  static std::size_t columns_of(const std::string& heading) {
    const std::size_t before = heading.find_last_of("( ");
    const std::size_t columns = before == heading.npos ? 0 : std::strtoul(&heading[before + 1], nullptr, 10);
    return std::max<std::size_t>(1, columns);
  }

  /// The parts of a line separated by three spaces or more.
  static std::vector<std::string> split_at_gaps(const std::string& line) {
    std::vector<std::string> parts;
    for (std::size_t start = line.find_first_not_of(' '); start < line.size();) {
      const std::size_t end = std::min(line.find("   ", start), line.size());
      parts.push_back(line.substr(start, end - start));
      start = line.find_first_not_of(' ', end);
    }
    return parts;
  }

  /// The last `count` numbers of a line; empty if there are fewer.
  static std::vector<double> last_numbers(const std::string& line, std::size_t count) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.size() < count) return {};
    std::vector<double> numbers;
    for (auto word = words.end() - static_cast<std::ptrdiff_t>(count); word != words.end(); ++word) {
      char* end = nullptr;
      numbers.push_back(std::strtod(word->c_str(), &end));
      if (*end != '\0') return {};
    }
    return numbers;
  }

  std::vector<std::string> lines_;
};

/// Runs a tutorial and expects no errors.
inline Printed run_tutorial(const std::string& program, int seed) {
  const Run run = run_example(program + " --seed " + std::to_string(seed));
  REQUIRE(run.err == "");
  REQUIRE(run.status == 0);
  return Printed(run.out);
}

/// Expects numbers as printed, with four decimals.
inline void check_printed(const Numbers& printed, const Numbers& expected) {
  REQUIRE(tapegrad::to_string(printed.shape()) == tapegrad::to_string(expected.shape()));
  for (std::size_t i = 0; i < printed.size(); ++i) {
    const double p = printed.data()[i], e = expected.data()[i];
    if (std::abs(p - e) <= 0.5e-4 + 1e-6 * (1 + std::abs(e)) || p == e || (std::isnan(p) && std::isnan(e))) continue;
    FAIL_CHECK("flat index " << i << ": expected " << e << ", printed " << p);
    return;
  }
}

/// Expects smaller differences in all of a section's comparisons. Returns their names and shapes.
inline std::vector<std::string> check_compared(const Printed& section, double limit) {
  std::vector<std::string> names;
  for (const Compared& line : section.comparisons()) {
    CAPTURE(line.name);
    CHECK(line.difference < limit);
    CHECK(line.verdict != "WRONG");
    names.push_back(line.name + ' ' + line.shape);
  }
  return names;
}

/// Expects weights after a dropout of 0.5, with this number of zeros or more, and as many others.
inline void check_dropped(const Numbers& dropped, Numbers weights, std::size_t min) {
  std::size_t zeros = 0, others = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights.data()[i] != 0) ++(dropped.data()[i] == 0 ? zeros : others);
    weights.data()[i] *= dropped.data()[i] == 0 ? 0 : 2;
  }
  check_printed(dropped, weights);
  CHECK(zeros >= min);
  CHECK(others >= min);
}
