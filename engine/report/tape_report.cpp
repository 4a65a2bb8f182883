// Looking at a tape: as a table, and as a graph.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "../tape/tape.hpp"
#include "internal/nodes.hpp"
#include "internal/table.hpp"

namespace tapegrad {
namespace {

using detail::NodeView;

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

template <class T> std::vector<std::string> row_of(const NodeView<T>& node) {
  std::string reads;
  for (const std::int32_t input : node.inputs)
    reads += (reads.empty() ? "" : " ") + (input < 0 ? "const" : '#' + std::to_string(input));
  std::vector<std::string> row{
      std::to_string(node.number), node.operation.name, node.name, to_string(node.shape), reads, "-", "-", "-", "-"};
  double gradient_norm = node.parameter_gradient != nullptr ? detail::norm(*node.parameter_gradient) : -1;
  if (node.profile != nullptr) {
    row[5] = bytes_text(node.profile->saved);
    row[6] = time_text(node.profile->forward);
    row[7] = time_text(node.profile->backward);
    gradient_norm = std::max(gradient_norm, node.profile->gradient_norm);
  }
  if (gradient_norm >= 0) row[8] = formatted("%.3g", gradient_norm);
  return row;
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

template <class T> void add_to_dot(std::ostream& out, const NodeView<T>& node) {
  const char* element = std::same_as<T, float> ? "f" : "d";
  out << "  " << element << node.number << " [label=\"";
  if (!node.name.empty()) out << escaped(node.name) << "\\n";
  if (!node.is_parameter || node.name.empty()) out << escaped(node.operation.name) << "\\n";
  out << to_string(node.shape) << '"' << (node.is_parameter ? ", style=filled, fillcolor=lightyellow" : "") << "];\n";
  for (const std::int32_t input : node.inputs)
    if (input >= 0) out << "  " << element << input << " -> " << element << node.number << ";\n";
}

}  // namespace

void Tape::print(std::ostream& out) const {
  using enum detail::Table::Align;
  detail::Table table({right, left, left, left, left, right, right, right, right});
  table.add({"#", "operation", "name", "shape", "reads", "saved", "forward", "backward", "|gradient|"});
  detail::for_each_node(*recordings_, [&](const auto& node) { table.add(row_of(node)); });
  out << table;
}

void Tape::to_dot(std::ostream& out) const {
  out << "digraph tape {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  detail::for_each_node(*recordings_, [&](const auto& node) { add_to_dot(out, node); });
  out << "}\n";
}

}  // namespace tapegrad
