// Prints a tape as a table and as a graph.
#include <charconv>
#include <ostream>
#include <string>
#include <vector>

#include "../engine/tape/tape.hpp"
#include "internal/node_view.hpp"
#include "internal/number_text.hpp"
#include "internal/table.hpp"

namespace tapegrad {
namespace {

using detail::NodeView;
using detail::number_text;
using enum std::chars_format;

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
  return number_text(amount, fixed, amount < 10 && *unit != 'B' ? 1 : 0) + ' ' + unit;
}

// "12.3 us"; "-" for a missing time
std::string time_text(double seconds) {
  if (seconds <= 0) return "-";
  return seconds < 1e-3 ? number_text(seconds * 1e6, fixed, 1) + " us" : number_text(seconds * 1e3, fixed, 2) + " ms";
}

// Requires a tape with an observer, otherwise "".
template <class T> std::string arguments_of(const NodeView<T>& node) {
  if (node.profile != nullptr) return node.profile->arguments;
  return node.kept != nullptr ? to_string(node.kept->arguments) : "";
}

template <class T> std::vector<std::string> row_of(const NodeView<T>& node) {
  std::string reads;
  for (const std::int32_t input : node.inputs)
    reads += (reads.empty() ? "" : " ") + (input < 0 ? "const" : '#' + std::to_string(input));
  std::vector<std::string> row{
      std::to_string(node.number), node.operation.name, node.name, to_string(node.shape), reads, "-", "-", "-", "-",
      arguments_of(node)};
  if (node.parameter_gradient != nullptr) row[8] = number_text(detail::norm(*node.parameter_gradient), general, 3);
  if (node.profile != nullptr) {
    row[5] = bytes_text(node.profile->saved);
    row[6] = time_text(node.profile->forward);
    row[7] = time_text(node.profile->backward);
    if (node.profile->backward >= 0) row[8] = number_text(node.profile->gradient_norm, general, 3);
  }
  return row;
}

// Escapes a text for Graphviz.
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
  detail::Table table({right, left, left, left, left, right, right, right, right, left});
  const TapeOptions& options = recording_->options();
  const bool describes = options.profile || options.keep_values;
  table.add({"#", "operation", "name", "shape", "reads", "saved", "forward", "backward", "|gradient|",
             describes ? "arguments" : ""});
  detail::for_each_node(*recording_, [&](const auto& node) { table.add(row_of(node)); });
  out << table;
}

void Tape::to_dot(std::ostream& out) const {
  out << "digraph tape {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  detail::for_each_node(*recording_, [&](const auto& node) { add_to_dot(out, node); });
  out << "}\n";
}

}  // namespace tapegrad
