// Checks documents: relative links lead to files, and the guided reading's line counts are correct.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "paths.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path root(TAPEGRAD_SOURCES);

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

// True if one of the document's headings has this anchor on GitHub.
bool has_anchor(const std::string& text, const std::string& anchor) {
  for (const std::smatch& heading : matches(text, std::regex("(?:^|\n)#+ ([^\n]*)"))) {
    std::string name;
    for (const char c : heading.str(1))
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
        name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c == ' ')
        name += '-';
    if (name == anchor) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("Relative links in documents lead to files and headings") {
  std::size_t links = 0;
  for (const char* folder : {".", "docs", "engine", "layers", "optim", "inspect", "examples", "tests"})
    for (fs::recursive_directory_iterator entry(root / folder), end; entry != end; ++entry) {
      if (std::string_view(folder) == "." && entry->is_directory()) entry.disable_recursion_pending();
      if (entry->path().extension() != ".md") continue;
      const std::string text = text_of(entry->path());
      for (const std::smatch& link : matches(text, std::regex(R"(\]\(([^)#:\s]*)(#[^)\s]*)?\))"))) {
        const fs::path target = link.length(1) > 0 ? entry->path().parent_path() / link.str(1) : entry->path();
        CAPTURE(entry->path().string());
        CAPTURE(link.str());
        CHECK(fs::exists(target));
        if (link.length(2) > 0 && target.extension() == ".md")
          CHECK(has_anchor(text_of(target), link.str(2).substr(1)));
        ++links;
      }
    }
  CHECK(links > 100);
}

TEST_CASE("docs/how_it_works.md has the line counts of the files it opens") {
  const std::string text = text_of(root / "docs/how_it_works.md");
  std::size_t files = 0;
  for (const std::smatch& row : matches(text, std::regex(R"(\n\| \[([^\]]+)\]\([^)]*\) \| (\d+) \|)"))) {
    const std::string source = text_of(root / row.str(1));
    CAPTURE(row.str(1));
    CHECK(std::stol(row.str(2)) == std::count(source.begin(), source.end(), '\n'));
    ++files;
  }
  CHECK(files >= 10);
}
