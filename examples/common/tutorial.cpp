#include "tutorial.hpp"

#include <algorithm>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <span>
#include <sstream>
#include <stdexcept>

#include "columns.hpp"
#include "interrupt.hpp"
#include "program.hpp"

namespace tg = tapegrad;

namespace examples {

namespace {

constexpr std::size_t page_width = 100, gap = 3;

/// Wraps text between words; indents all lines except the first.
std::string paragraph(const std::string& text, std::size_t indent = 0) {
  std::istringstream words(text);
  std::string lines, line, word;
  while (words >> word) {
    if (!line.empty() && line.size() + 1 + word.size() > page_width) {
      lines += line + '\n';
      line = std::string(indent, ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return lines + line + '\n';
}

void print_line(const std::string& line) { std::cout << line.substr(0, line.find_last_not_of(' ') + 1) << '\n'; }

std::string format(double number, int decimals) {
  if (std::isnan(number)) return "nan";  // never -nan
  std::ostringstream text;
  if (std::abs(number) < 1e5) text << std::fixed << std::setprecision(decimals);  // otherwise 1e+20
  // Inputs of one decimal produce ties. The factor rounds them as on paper, independent of floating-point error.
  text << number * (1 + 1e-12);
  const bool zero = text.str().find_first_of("123456789f") == std::string::npos;  // f: not inf
  return zero && std::signbit(number) ? text.str().substr(1) : text.str();
}

/// A matrix as lines of text: heading, column labels, rows.
using Block = std::vector<std::string>;

/// Formats the matrix that starts at element `first` of the array.
Block make_block(const std::string& heading, const Named& array, std::size_t first, const Style& style) {
  const tg::Array<double>& x = array.values;
  const std::size_t axes = x.dimension(), columns = axes > 0 ? x.shape()[axes - 1] : 1,
                    rows = axes > 1 ? x.shape()[axes - 2] : 1;
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < rows * columns; ++i)
    cells.push_back(format(x.data()[first + i], array.whole ? 0 : style.decimals));
  const std::size_t cell = std::max(widest(cells), widest(style.columns)) + 2;

  Block lines{heading};
  const auto add_line = [&](const std::string* texts) {
    lines.emplace_back();
    for (std::size_t j = 0; j < columns; ++j) lines.back() += flush_right(texts[j], cell);
  };
  if (!style.columns.empty()) add_line(style.columns.data());
  for (std::size_t i = 0; i < rows; ++i) add_line(&cells[i * columns]);
  return lines;
}

/// Prints blocks of equal height next to each other.
void print_side_by_side(std::span<const Block> blocks, const Style& style) {
  Block page(blocks[0].size());
  std::transform(style.rows.rbegin(), style.rows.rend(), page.rbegin(), [](const auto& row) { return "  " + row; });
  std::size_t left = widest(page);
  for (const Block& block : blocks) {
    page[0] = page[0].empty() ? block[0] : flush_left(page[0], left) + block[0];  // the first starts the line
    for (std::size_t i = 1; i < page.size(); ++i) page[i] = flush_left(page[i], left) + block[i];
    left = widest(page) + gap;
  }
  for (const std::string& line : page) print_line(line);
}

/// Prints blocks next to each other while they fit and have equal height, then starts a new row. Prints `above` before
/// each row of blocks.
void print_blocks(std::span<const Block> blocks, const Style& style, const char* above) {
  while (!blocks.empty()) {
    std::size_t count = 0, used = style.rows.empty() ? 0 : 2 + widest(style.rows);
    do used += widest(blocks[count++]) + gap;
    while (count < blocks.size() && blocks[count].size() == blocks[0].size() &&
           used + widest(blocks[count]) <= page_width);
    std::cout << above;
    print_side_by_side(blocks.first(count), style);
    blocks = blocks.subspan(count);
  }
}

std::string title(const Named& array) { return array.name + ' ' + tg::to_string(array.values.shape()); }

}  // namespace

int run_tutorial(int argc, char** argv, const std::string& name, const std::string& description,
                 const tg::PageOptions& page_options, const std::function<void(tg::Page&)>& body) {
  CLI::App app(paragraph(description), name);
  app.get_formatter()->column_width(26);
  std::uint64_t seed = 0;
  app.add_option("--seed", seed, "Seed of the random numbers; equal seeds give equal runs (default 0)")
      ->type_name("N")
      ->check(whole_number(0));
  std::string file;
  app.add_option("--page", file, "Write the computation as a web page to step through")
      ->type_name("FILE")
      ->check(some_path());
  return run_program(app, argc, argv, [&] {
    prepare_outputs({file}, {});
    tg::manual_seed(seed);
    tg::Page page(page_options);
    body(page);
    if (!file.empty()) write_whole([&] { page.save(file); });
    return 0;
  });
}

std::vector<std::string> numbered(const std::string& word, std::size_t count) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < count; ++i) labels.push_back(word + ' ' + std::to_string(i));
  return labels;
}

void section(const std::string& title, const std::string& about) {
  std::cout << '\n' << title << '\n' << std::string(title.size(), '-') << '\n' << paragraph(about);
}

void say(const std::string& text) { std::cout << '\n' << paragraph(text); }

void see(const std::string& text) { std::cout << paragraph("-> " + text, 3); }

void show_together(const std::vector<Named>& arrays, const Style& style) {
  std::vector<Block> blocks;
  blocks.reserve(arrays.size());
  for (const Named& array : arrays) blocks.push_back(make_block(title(array), array, 0, style));
  print_blocks(blocks, style, "\n");
}

void show(const Named& array, const Style& style) {
  const tg::Array<double>& x = array.values;
  if (x.dimension() <= 2) return show_together({array}, style);

  std::cout << '\n' << title(array) << '\n';
  const auto extent = [&](std::size_t from_last) { return x.shape()[x.dimension() - from_last]; };
  const std::size_t matrix = extent(1) * extent(2), matrices = extent(3);
  for (std::size_t first = 0, i = 0; first < x.size(); first += matrix * matrices, ++i) {
    const std::string outer = x.dimension() > 3 ? std::to_string(i) + ", " : "";
    std::vector<Block> blocks;
    for (std::size_t j = 0; j < matrices; ++j)
      blocks.push_back(make_block("  [" + outer + std::to_string(j) + "]", array, first + j * matrix, style));
    print_blocks(blocks, style, "");
  }
}

void finish(const Comparison& table) {
  std::cout << '\n' << table;
  if (!table) throw std::runtime_error("expected equal numbers from both computations, got different ones");
}

}  // namespace examples
