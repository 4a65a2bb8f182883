#include "internal/table.hpp"

#include <algorithm>
#include <ostream>

namespace tapegrad::detail {

std::size_t character_count(const std::string& text) {
  const auto begins = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins));
}

std::ostream& operator<<(std::ostream& out, const Table& table) {
  using enum Table::Align;
  std::vector<std::size_t> widths;
  const auto align = [&](std::size_t c) { return c < table.align_.size() ? table.align_[c] : left; };
  const auto end_of = [](const std::vector<std::string>& row) {
    std::size_t end = row.size();
    while (end > 0 && row[end - 1].empty()) --end;
    return end;
  };
  for (const auto& row : table.rows_) {
    const std::size_t end = end_of(row);
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < end; ++c)
      if (c + 1 < end || align(c) != overflow) widths[c] = std::max(widths[c], character_count(row[c]));
  }
  for (const auto& row : table.rows_) {
    std::string line(table.indent_, ' ');
    const std::size_t end = end_of(row);
    for (std::size_t c = 0; c < end; ++c) {
      const std::size_t count = character_count(row[c]);
      const std::string padding(widths[c] - std::min(widths[c], count), ' ');
      if (c > 0) line += std::string(widths[c - 1] == 0 ? 0 : table.gap_, ' ');
      line += align(c) == right ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
  return out;
}

}  // namespace tapegrad::detail
