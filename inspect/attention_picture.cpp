#include "internal/attention_picture.hpp"

#include <algorithm>
#include <locale>
#include <sstream>

namespace tapegrad::detail {
namespace {

// In pixels, the approximate width of a label's letter.
constexpr std::size_t kLetter = 7, kLine = 20, kGap = 14, kTitle = 44, kColourBar = 90;

std::size_t letters(const std::string& text) {  // in UTF-8: the bytes other than continuation bytes
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t widest(const std::vector<std::string>& tokens) {
  std::size_t max_letters = 0;
  for (const std::string& token : tokens) max_letters = std::max(max_letters, letters(token));
  return max_letters * kLetter;
}

// Replaces spaces and line ends by visible signs.
std::string visible(const std::string& token) {
  std::string text;
  for (const char c : token) {
    if (c == ' ')
      text += "␣";
    else if (c == '\n')
      text += "↵";
    else if (c == '\t')
      text += "→";
    else if (static_cast<unsigned char>(c) >= ' ')
      text += c;
  }
  return text;
}

// A single-quoted gnuplot string, not interpreted like a double-quoted one. An apostrophe becomes a typographic one,
// since gnuplot drops a label of only an apostrophe.
std::string gnuplot_string(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "’" : std::string(1, c == '\n' ? ' ' : c);
  return result + "'";
}

// ('t' 0, 'h' 1, 'e' 2): with many tokens only every n-th. gnuplot interprets % as a format.
std::string labels(const std::vector<std::string>& tokens, std::size_t every) {
  std::string list;
  for (std::size_t i = 0; i < tokens.size(); i += every) {
    std::string text;
    for (const char c : tokens[i]) text += c == '%' ? "%%" : std::string(1, c);
    list += (list.empty() ? "" : ", ") + gnuplot_string(text) + ' ' + std::to_string(i);
  }
  return '(' + list + ')';
}

// The layout, in pixels from the left and the top.
struct Layout {
  std::size_t layers, heads;  // a row of panels per layer, or wrapped rows for one layer
  std::size_t cell, every;    // a weight's width and height; every n-th token has a label
  bool rotated;               // the keys' labels, if they are too long to fit side by side
  std::size_t columns, rows;
  std::size_t panel_width, panel_height, left, above, step_x, step_y, width, height;
};

// The title of a head's panel.
std::string name_of(std::size_t h, const Layout& l) {
  const std::string head = "head " + std::to_string(h % l.heads);
  return l.layers > 1 ? "layer " + std::to_string(h / l.heads) + ", " + head : head;
}

Layout make_layout(std::size_t heads, std::size_t layers, const std::vector<std::string>& queries,
                   const std::vector<std::string>& keys, const std::string& title) {
  Layout l{};
  l.layers = layers;
  l.heads = heads / layers;
  l.cell = std::clamp<std::size_t>(640 / std::max(queries.size(), keys.size()), 2, 22);
  l.every = (16 + l.cell - 1) / l.cell;
  for (std::size_t i = 0; i + l.every < keys.size(); i += l.every)
    l.rotated |= (letters(keys[i]) + letters(keys[i + l.every])) * kLetter > 2 * l.every * l.cell;
  l.panel_width = l.cell * keys.size();
  l.panel_height = l.cell * queries.size();
  l.left = widest(queries) + kGap + kLetter;
  l.above = kLine + 4;
  l.step_x = std::max(l.left + l.panel_width, letters(name_of(heads - 1, l)) * kLetter) + kGap;
  l.step_y = l.above + l.panel_height + (l.rotated ? widest(keys) + kGap : kLine) + kGap;
  l.columns = layers > 1 ? l.heads : 1;  // for one layer: about the width of a screen
  while (layers == 1 && l.columns < heads &&
         5 * l.columns * l.step_x < 8 * ((heads + l.columns - 1) / l.columns) * l.step_y)
    ++l.columns;
  l.rows = (heads + l.columns - 1) / l.columns;
  l.columns = (heads + l.rows - 1) / l.rows;
  l.width = std::max({l.columns * l.step_x + kColourBar, (letters(title) + 4) * (kLetter + 2), 66 * kLetter});
  l.height = kTitle + l.rows * l.step_y + kLine;
  return l;
}

void write_panel(std::ostream& out, const Array<double>& weights, std::size_t h, const Layout& l) {
  const std::size_t x = h % l.columns * l.step_x + l.left, y = kTitle + h / l.columns * l.step_y + l.above;
  const auto part = [](std::size_t pixels, std::size_t all) {
    return static_cast<double>(pixels) / static_cast<double>(all);
  };
  out << "set lmargin at screen " << part(x, l.width) << "\nset rmargin at screen " << part(x + l.panel_width, l.width)
      << "\nset tmargin at screen " << 1 - part(y, l.height) << "\nset bmargin at screen "
      << 1 - part(y + l.panel_height, l.height) << '\n';
  if (h == 0)  // one color bar for all, next to the first row
    out << "set colorbox user origin " << part(l.columns * l.step_x + 4, l.width) << ','
        << 1 - part(y + l.panel_height, l.height) << " size " << part(14, l.width) << ','
        << part(l.panel_height, l.height) << "\nset cbtics " << (l.panel_height < 11 * kLine ? 0.5 : 0.1) << '\n';
  else
    out << "unset colorbox\n";
  out << "set title '" << name_of(h, l) << "' offset 0,-0.6\n$weights << end\n";
  for (std::size_t t = 0; t < weights.shape()[1]; ++t) {
    for (std::size_t s = 0; s < weights.shape()[2]; ++s) out << weights(h, t, s) << ' ';
    out << '\n';
  }
  out << "end\nplot $weights matrix with image pixels notitle\nunset label 1\n";
}

}  // namespace

std::string picture_script(const Array<double>& weights, std::size_t layers, const std::vector<std::string>& queries,
                           const std::vector<std::string>& keys, const std::string& title) {
  std::vector<std::string> rows, columns;
  for (const std::string& token : queries) rows.push_back(visible(token));
  for (const std::string& token : keys) columns.push_back(visible(token));
  const Layout l = make_layout(weights.shape()[0], layers, rows, columns, title);

  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.exceptions(std::ios::badbit);  // throws when out of memory
  out << "set terminal pngcairo noenhanced font 'DejaVu Sans,10' size " << l.width << ',' << l.height
      << "\nset encoding utf8\nset multiplot title " << gnuplot_string(title) << " font 'DejaVu Sans,13'\n"
      << "set xrange [-0.5:" << keys.size() << "-0.5]\nset yrange [" << queries.size() << "-0.5:-0.5]\n"
      << "set cbrange [0:" << std::max(*std::max_element(weights.begin(), weights.end()), 1e-6) << "]\n"
      << "set palette defined (0 '#ffffff', 1 '#c6dbef', 2 '#6baed6', 3 '#2171b5', 4 '#08306b')\n"
      << "set tics scale 0 textcolor 'black'\nset border lc rgb '#909090'\n"
      << "set label 1 'Each row: how much this token attends to those of the columns' at screen 0.5, screen "
      << 0.7 * kLine / static_cast<double>(l.height) << " center\nset xtics " << (l.rotated ? "rotate right " : "")
      << labels(columns, l.every) << "\nset ytics " << labels(rows, l.every) << '\n';
  for (std::size_t h = 0; h < weights.shape()[0]; ++h) write_panel(out, weights, h, l);
  return out.str();
}

}  // namespace tapegrad::detail
