// Looking at a tape: as a table, and as a graph.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "../tape/internal/recording.hpp"
#include "../tape/tape.hpp"
#include "internal/table.hpp"

namespace tapegrad {
namespace {

using detail::Node;
using detail::Profile;
using detail::Recording;

std::string formatted(const char* format, double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// "1.5 KB"
std::string bytes_text(std::size_t bytes) {
  if (bytes == 0) return "-";
  double amount = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* larger : {"KB", "MB", "GB"}) {
    if (amount < 1000) break;
    amount /= 1000;
    unit = larger;
  }
  return formatted(amount < 10 && *unit != 'B' ? "%.1f " : "%.0f ", amount) + unit;
}

// "12.3 us"; "-" for a time that was not taken
std::string time_text(double seconds) {
  if (seconds <= 0) return "-";
  return seconds < 1e-3 ? formatted("%.1f us", seconds * 1e6) : formatted("%.2f ms", seconds * 1e3);
}

template <class T> void add_rows(detail::Table& table, const Recording<T>& recording) {
  for (std::size_t i = 0; i < recording.size(); ++i) {
    const Node<T>& node = recording.nodes()[i];
    std::vector<std::string> row{std::to_string(i),
                                 node.operation,
                                 recording.name(static_cast<std::int32_t>(i)),
                                 to_string(node.shape),
                                 "",
                                 "-",
                                 "-",
                                 "-",
                                 "-"};
    for (std::int32_t input : node.inputs)
      row[4] += (row[4].empty() ? "" : " ") + (input < 0 ? "const" : '#' + std::to_string(input));
    double gradient_norm = node.is_parameter && node.leaf->grad ? detail::norm(*node.leaf->grad) : -1;
    if (!recording.profiles().empty()) {
      const Profile& p = recording.profiles()[i];
      row[5] = bytes_text(p.saved);
      row[6] = time_text(p.forward);
      row[7] = time_text(p.backward);
      gradient_norm = std::max(gradient_norm, p.gradient_norm);
    }
    if (gradient_norm >= 0) row[8] = formatted("%.3g", gradient_norm);
    table.add(std::move(row));
  }
}

// As it may stand between quotes in Graphviz's language.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

template <class T> void add_to_dot(std::ostream& out, const Recording<T>& recording) {
  const char* element = std::same_as<T, float> ? "f" : "d";
  for (std::size_t i = 0; i < recording.size(); ++i) {
    const Node<T>& node = recording.nodes()[i];
    const std::string name = recording.name(static_cast<std::int32_t>(i));
    out << "  " << element << i << " [label=\"";
    if (!name.empty()) out << escaped(name) << "\\n";
    if (!node.is_parameter || name.empty()) out << escaped(node.operation) << "\\n";
    out << to_string(node.shape) << '"' << (node.is_parameter ? ", style=filled, fillcolor=lightyellow" : "") << "];\n";
    for (std::int32_t input : node.inputs)
      if (input >= 0) out << "  " << element << input << " -> " << element << i << ";\n";
  }
}

}  // namespace

void Tape::print(std::ostream& out) const {
  using enum detail::Table::Align;
  detail::Table table({right, left, left, left, left, right, right, right, right});
  table.add({"#", "operation", "name", "shape", "reads", "saved", "forward", "backward", "|gradient|"});
  add_rows(table, recordings_->of<float>());
  add_rows(table, recordings_->of<double>());
  out << table;
}

void Tape::to_dot(std::ostream& out) const {
  out << "digraph tape {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  add_to_dot(out, recordings_->of<float>());
  add_to_dot(out, recordings_->of<double>());
  out << "}\n";
}

}  // namespace tapegrad
