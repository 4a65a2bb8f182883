// The structure of the sources: folders include only earlier folders, headers have no circular includes, and installed
// headers include no private ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "paths.hpp"

namespace {

namespace fs = std::filesystem;

using Sources = std::map<std::string, std::string>;  // path -> text

// In the order of dependency: a folder's files include files of their own folder and of earlier ones.
const std::vector<std::string> kFolders{
    "engine/array", "engine/kernels", "engine/tape",  "engine/ops",       "layers/model",    "layers",  "optim",
    "optim/mpi",    "inspect",        "inspect/page", "include/tapegrad", "examples/common", "examples"};

struct Include {
  std::string place;  // file:line: #include ...
  std::string from, to;
};

// The index in kFolders of the innermost folder that contains the file, or kFolders.size().
std::size_t folder_of(const std::string& path) {
  std::size_t found = kFolders.size();
  for (std::size_t i = 0; i < kFolders.size(); ++i) {
    const bool inside = path == kFolders[i] || path.starts_with(kFolders[i] + '/');
    if (inside && (found == kFolders.size() || kFolders[found].size() < kFolders[i].size())) found = i;
  }
  return found;
}

bool is_private(const std::string& path) {
  return path.find("/internal/") != std::string::npos || path.starts_with("engine/kernels/");
}

bool is_installed(const std::string& path) {
  return path.ends_with(".hpp") && !path.starts_with("examples/") && !is_private(path);
}

// The includes of project files, as "..." or as <tapegrad/...>.
std::vector<Include> includes_of(const Sources& sources) {
  static const std::regex pattern(R"(\s*#\s*include\s*(?:"([^"]+)\"|<tapegrad/([^>]+)>).*)");
  std::vector<Include> includes;
  for (const auto& [path, text] : sources) {
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      std::smatch match;
      if (line.find("include") == std::string::npos || !std::regex_match(line, match, pattern)) continue;
      fs::path to = match.str(2);
      if (match[1].matched)
        to = fs::path(path).parent_path() / match.str(1);
      else if (!to.has_parent_path())
        to = "include/tapegrad" / to;
      includes.push_back({path + ':' + std::to_string(number) + ": " + line, path, to.lexically_normal().string()});
    }
  }
  return includes;
}

// Follows the includes from each header, depth first. An include of a header on the current path closes a circle.
class Circles {
 public:
  explicit Circles(const std::vector<Include>& includes) {
    for (const Include& include : includes) includes_[include.from].push_back(&include);
  }

  std::vector<std::string> find() {
    for (const auto& [file, _] : includes_) follow(file);
    return found_;
  }

 private:
  void follow(const std::string& file) {
    const auto begin = std::ranges::find_if(path_, [&](auto* i) { return i->from == file; });
    if (begin != path_.end()) {
      std::string text = "a circle:";
      for (auto include = begin; include != path_.end(); ++include) text += "\n    " + (*include)->place;
      found_.push_back(text);
      return;
    }
    if (!done_.insert(file).second) return;
    const auto known = includes_.find(file);
    if (known == includes_.end()) return;
    for (const Include* include : known->second) {
      path_.push_back(include);
      follow(include->to);
      path_.pop_back();
    }
  }

  std::map<std::string, std::vector<const Include*>> includes_;  // by file
  std::set<std::string> done_;
  std::vector<const Include*> path_;
  std::vector<std::string> found_;
};

std::vector<std::string> faults_of(const Sources& sources) {
  const std::vector<Include> includes = includes_of(sources);
  std::vector<std::string> faults = Circles(includes).find();
  for (const auto& [path, _] : sources)
    if (folder_of(path) == kFolders.size()) faults.push_back(path + " is in a folder missing from kFolders");
  for (const auto& [place, from, to] : includes) {
    if (!sources.contains(to)) faults.push_back(place + " does not exist");
    if (folder_of(to) > folder_of(from))
      faults.push_back(place + " leads up, from " + kFolders[folder_of(from)] + " to " + to);
    if (is_installed(from) && is_private(to)) faults.push_back(place + " is not installed, but " + from + " is");
  }
  return faults;
}

Sources read_project() {
  Sources sources{{"include/tapegrad/array_operands.hpp", "#include <tapegrad/engine/ops/ops.hpp>\n"}};  // generated
  const fs::path root(TAPEGRAD_SOURCES);
  const auto add = [&](const fs::path& file) {
    std::ifstream in(file);
    sources[fs::relative(file, root).string()] = std::string(std::istreambuf_iterator<char>(in), {});
  };
  for (const char* folder : {"engine", "layers", "optim", "inspect", "include", "examples"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path ending = entry.path().extension();
      if (ending == ".hpp" || ending == ".cpp" || ending == ".ipp") add(entry.path());
    }
  return sources;
}

TEST_CASE("Includes lead to the same or an earlier folder, without cycles, and private headers stay private") {
  const Sources sources = read_project();
  CHECK(sources.size() > 100);
  CHECK(includes_of(sources).size() > 300);
  for (const std::string& fault : faults_of(sources)) FAIL_CHECK(fault);
}

TEST_CASE("Violations are reported with file, line and include") {
  using Faults = std::vector<std::string>;
  const std::string array = "engine/array/array.hpp", tape = "engine/tape/tape.hpp";
  CHECK(faults_of({{array, ""}, {tape, "#include \"../array/array.hpp\"\n"}}).empty());
  CHECK(faults_of({{array, "#pragma once\n#include \"../tape/tape.hpp\"\n"}, {tape, ""}}) ==
        Faults{"engine/array/array.hpp:2: #include \"../tape/tape.hpp\" leads up, from engine/array to " + tape});
  CHECK(faults_of({{"engine/array/a.hpp", "#include \"internal/b.hpp\""}, {"engine/array/internal/b.hpp", ""}}) ==
        Faults{"engine/array/a.hpp:1: #include \"internal/b.hpp\" is not installed, but engine/array/a.hpp is"});
  CHECK(faults_of({{"optim/a.hpp", "#include <tapegrad/engine/kernels/b.hpp>"}, {"engine/kernels/b.hpp", ""}}) ==
        Faults{"optim/a.hpp:1: #include <tapegrad/engine/kernels/b.hpp> is not installed, but optim/a.hpp is"});
  CHECK(faults_of({{"optim/a.hpp", "#include \"b.hpp\""}, {"optim/b.hpp", "#include \"a.hpp\""}}) ==
        Faults{"a circle:\n    optim/a.hpp:1: #include \"b.hpp\"\n    optim/b.hpp:1: #include \"a.hpp\""});
  CHECK(faults_of({{"layers/linear.hpp", "#include \"../inspect/map.hpp\""}, {"inspect/map.hpp", ""}}).size() == 1);
  CHECK(faults_of({{"inspect/map.hpp", "#include \"../layers/linear.hpp\""}, {"layers/linear.hpp", ""}}).empty());
  CHECK(faults_of({{"engine/new/a.hpp", ""}}) == Faults{"engine/new/a.hpp is in a folder missing from kFolders"});
  CHECK(faults_of({{"optim/a.hpp", "#include \"gone.hpp\""}}) ==
        Faults{"optim/a.hpp:1: #include \"gone.hpp\" does not exist"});
}

}  // namespace
