// Compares README.zh.md with README.md: parts have equal headings, code, tables, pictures, links, names and numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "paths.hpp"

namespace {

using Marks = std::set<std::string>;

struct Part {  // a heading, a paragraph, a line of code, or a cell of a table
  int line;
  std::string kind, text;
  Marks marks;  // content common to both languages
};

// Inline code, the targets of links and pictures, and numbers. Their order may differ between languages.
Marks marks_of(const std::string& text) {
  static const std::regex pattern(R"(`[^`]+`|!\[|\]\([^)]+\)|[0-9]+([.,][0-9]+)*)");
  Marks marks;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
    marks.insert(match->str());
  return marks;
}

std::vector<Part> parts_of(std::istream&& text) {
  std::vector<Part> parts;
  bool fenced = false, continues = false;  // in a code block; in a paragraph
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const bool fence = line.starts_with("```"), in_paragraph = std::exchange(continues, false);
    if (fence || fenced || line.starts_with("    ")) {
      parts.push_back({number, "code", line, {line}});
      fenced ^= fence;
    } else if (line.starts_with('#')) {
      const std::string level = line.substr(0, line.find(' '));
      parts.push_back({number, "a heading " + level, line, marks_of(line)});
    } else if (line.starts_with('|')) {
      std::istringstream cells(line.substr(1));
      for (std::string cell; std::getline(cells, cell, '|');) parts.push_back({number, "a cell", cell, marks_of(cell)});
      parts.push_back({number, "the end of a row", "|", {}});
    } else if (!line.empty()) {
      if (!in_paragraph) parts.push_back({number, "a paragraph", "", {}});
      Part& paragraph = parts.back();
      paragraph.text += (in_paragraph ? " " : "") + line;
      paragraph.marks = marks_of(paragraph.text);
      continues = true;
    }
  }
  parts.push_back({number, "the end", "", {}});
  return parts;
}

// The content of one part missing in the other.
std::string surplus(const Part& part, const Part& other) {
  if (part.kind != other.kind) return part.kind + " \"" + part.text + '"';
  std::string text;
  for (const std::string& mark : part.marks)
    if (!other.marks.contains(mark)) text += (text.empty() ? "\"" : " and \"") + mark + '"';
  return text.empty() ? "nothing" : text;
}

// The first difference, or "".
std::string difference(const std::vector<Part>& english, const std::vector<Part>& chinese) {
  for (std::size_t i = 0; i < std::min(english.size(), chinese.size()); ++i) {
    const Part &expected = english[i], &given = chinese[i];
    if (expected.kind != given.kind || expected.marks != given.marks)
      return "README.zh.md:" + std::to_string(given.line) + ": expected " + surplus(expected, given) +
             ", as in README.md:" + std::to_string(expected.line) + ", got " + surplus(given, expected);
  }
  return "";  // both have reached "the end"
}

TEST_CASE("README.zh.md has the code, tables, pictures, links, names and numbers of README.md in the same order") {
  const std::string root(TAPEGRAD_SOURCES "/");
  const std::vector<Part> english = parts_of(std::ifstream(root + "README.md"));
  CHECK(english.size() > 200);
  CHECK(difference(english, parts_of(std::ifstream(root + "README.zh.md"))) == "");
}

TEST_CASE("Missing and different content of the translation is reported with its line") {
  const auto compare = [](const std::string& english, const std::string& chinese) {
    return difference(parts_of(std::istringstream(english)), parts_of(std::istringstream(chinese)));
  };
  CHECK(compare("## Run\n\nIt takes 9,000 words\nand `--help`.", "## 运行\n\n加上 `--help` 需要 9,000 个单词。") == "");
  CHECK(compare("It takes\n9,000 words.\n", "需要 900 个单词。\n") ==
        R"(README.zh.md:1: expected "9,000", as in README.md:1, got "900")");
  CHECK(compare("See [a](a.md), `b` and `c`.\n", "见 [a](b.md) 和 `b`。\n") ==
        R"~(README.zh.md:1: expected "](a.md)" and "`c`", as in README.md:1, got "](b.md)")~");
  CHECK(compare("```cpp\nint a;\n\nint b;\n```\n", "```cpp\nint a;\nint b;\n```\n") ==
        R"(README.zh.md:3: expected "", as in README.md:3, got "int b;")");
  CHECK(compare("```sh\nrun\n```\n", "```text\nrun\n```\n") ==
        R"(README.zh.md:1: expected "```sh", as in README.md:1, got "```text")");
  CHECK(compare("    a\n", "    b\n") == R"(README.zh.md:1: expected "    a", as in README.md:1, got "    b")");
  CHECK(compare("One.\n\n## B\n\nTwo.\n", "一。\n\n二。\n") ==
        R"(README.zh.md:3: expected a heading ## "## B", as in README.md:3, got a paragraph "二。")");
  CHECK(compare("## A\n", "### 甲\n") ==
        R"(README.zh.md:1: expected a heading ## "## A", as in README.md:1, got a heading ### "### 甲")");
  CHECK(compare("One.\n\n![a\nb](c.png)\n\nTwo.\n", "一。\n\n二。\n") ==
        R"~(README.zh.md:3: expected "![" and "](c.png)", as in README.md:3, got nothing)~");
  CHECK(compare("One.\n\nTwo.\n", "一。\n") ==
        R"(README.zh.md:1: expected a paragraph "Two.", as in README.md:3, got the end "")");
  CHECK(compare("|a|b|\n|-|-|\n|1|2|\n|3|4|\n", "|甲|乙|\n|-|-|\n|3|4|\n") ==
        R"(README.zh.md:3: expected "1", as in README.md:3, got "3")");
  CHECK(compare("|a|b|\n", "|甲|\n") ==
        R"(README.zh.md:1: expected a cell "b", as in README.md:1, got the end of a row "|")");
}

}  // namespace
