/// Text tables with aligned columns. For the library's own sources.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace tapegrad::detail {

/// The number of characters in UTF-8: its bytes other than continuation bytes.
std::size_t character_count(const std::string& text);

/// Rows of cells, possibly of different lengths. Prints each column as wide as its widest cell, without spaces at the
/// end of a line.
class Table {
 public:
  /// `overflow` aligns left, and the last cell of a row does not widen its column.
  enum class Align { left, right, overflow };

  /// `align` starts at the first column; further columns align left. `gap` spaces separate columns, `indent` spaces
  /// precede the first.
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
