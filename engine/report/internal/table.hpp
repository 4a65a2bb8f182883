/// Tables of text, their columns lined up. For the library's own sources.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace tapegrad::detail {

/// How many characters a text in UTF-8 has: each has one byte that continues no other.
std::size_t character_count(const std::string& text);

/// Rows of cells; a row may have fewer than the widest one. Printed, every column is as wide as its widest cell, spaces
/// stand between columns, and none at a line's end.
class Table {
 public:
  /// `overflow` is left, where a cell that nothing follows runs on into the next columns instead of widening its own.
  enum class Align { left, right, overflow };

  /// `align` of the columns from the first on; further ones are aligned to the left. `gap` spaces between columns,
  /// `indent` before the first.
  explicit Table(std::vector<Align> align = {}, std::size_t gap = 2, std::size_t indent = 0)
      : align_(std::move(align)), gap_(gap), indent_(indent) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  friend std::ostream& operator<<(std::ostream& out, const Table& table);

 private:
  std::vector<Align> align_;
  std::size_t gap_, indent_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tapegrad::detail
