#include "listing.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <sstream>

#include "../../engine/report/internal/table.hpp"
#include "internal/copies.hpp"

namespace tapegrad::detail {
namespace {

// "Linear" from the compiler's name of tapegrad::Linear<float>: without namespaces and template arguments.
std::string short_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  std::string name;
  int depth = 0;  // of brackets: template arguments, or parameters of the function containing a local type
  for (char c : std::string(status == 0 ? demangled.get() : type.name())) {
    if (c == '<' || c == '(') ++depth;
    if (depth == 0 && c == ':') name.clear();
    if (depth == 0 && c != ':') name += c;
    if (c == '>' || c == ')') --depth;
  }
  return name;
}

std::string with_thousands(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = 3; place < text.size(); place += 4) text.insert(text.size() - place, ",");
  return text;
}

void append(std::string& list, const std::string& item) { list += (list.empty() ? "" : ", ") + item; }

std::string relative(const std::string& path, const std::string& outer) {
  return outer.empty() ? path : path.substr(outer.size() + 1);
}

}  // namespace

// The row of the innermost struct containing the path; null if the model is not a struct.
Listing::Row* Listing::owner(const std::string& path) {
  const auto row = std::find_if(rows_.rbegin(), rows_.rend(), [&](const Row& candidate) {
    return candidate.path.empty() || path.starts_with(candidate.path + '.');
  });
  return row == rows_.rend() ? nullptr : &*row;
}

void Listing::add_struct(const Path& path, const std::type_info& type) {
  Row row;
  row.path = path.text();
  row.type = short_name(type);
  const Row* outer = owner(row.path);
  row.name = outer ? relative(row.path, outer->path) : row.path;
  row.depth = outer ? outer->depth + 1 : 0;
  rows_.push_back(row);
}

void Listing::add_parameter(const Path& path, const Shape& shape, const void* array) {
  const std::string text = path.text();
  if (element_count(shape) > 0) arrays_.emplace_back(text, array);
  Row* row = owner(text);
  if (!row) row = &rows_.emplace_back();
  const std::string name = relative(text, row->path);
  append(row->shapes, name + (name.empty() ? "" : " ") + to_string(shape));
  row->count += element_count(shape);
}

void Listing::add_array(const Path& path, const Shape& shape) {
  const std::string text = path.text();
  if (Row* row = owner(text)) append(row->shapes, relative(text, row->path) + ' ' + to_string(shape));
}

void Listing::add_number(const Path& path, const std::string& number) {
  const std::string text = path.text();
  if (Row* row = owner(text)) append(row->numbers, relative(text, row->path) + '=' + number);
}

std::string number_text(bool value) { return value ? "true" : "false"; }
std::string number_text(long long value) { return std::to_string(value); }
std::string number_text(unsigned long long value) { return std::to_string(value); }
std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

void Listing::print(std::ostream& out) const {
  using enum Table::Align;
  Table table({overflow, overflow, overflow, right});  // name, type with settings, shapes, count
  std::size_t total = 0;
  for (const Row& row : rows_) {
    const std::string type = row.type + (row.numbers.empty() ? "" : '(' + row.numbers + ')');
    const std::string count = row.count == 0 ? "" : with_thousands(row.count);
    if (row.name.empty())  // the model itself is listed by its type
      table.add({type, "", row.shapes, count});
    else
      table.add({std::string(2 * row.depth, ' ') + row.name, type, row.shapes, count});
    total += row.count;
  }
  table.add({"total", "", "", with_thousands(total)});
  out << table;
  print_copies(out, arrays_);
}

}  // namespace tapegrad::detail
