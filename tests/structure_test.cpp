// Checks the layers of folders: permitted includes, no circular includes, and no internal headers in installed ones.
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
#include <string_view>
#include <vector>

#include "paths.hpp"

namespace {

namespace fs = std::filesystem;

using Sources = std::map<std::string, std::string>;  // path -> text

// From the bottom up: files include only their own folder and earlier ones.
const std::vector<std::string> kRooms{
    "engine/array", "engine/kernels", "engine/tape",   "engine/ops",      "engine/report", "engine/testing",
    "layers/model", "layers",         "layers/report", "layers/page",     "optim",         "optim/mpi",
    "tapegrad.hpp", "testing.hpp",    "mpi.hpp",       "examples/common", "examples"};

struct Include {
  std::string place;  // file:line: #include ...
  std::string from, to;
};

// The index in kRooms of the most specific folder with the file; kRooms.size() if none.
std::size_t room_of(const std::string& path) {
  std::size_t found = kRooms.size();
  for (std::size_t i = 0; i < kRooms.size(); ++i) {
    const bool inside = path == kRooms[i] || path.starts_with(kRooms[i] + '/');
    if (inside && (found == kRooms.size() || kRooms[found].size() < kRooms[i].size())) found = i;
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
      const fs::path to = match[1].matched ? fs::path(path).parent_path() / match.str(1) : fs::path(match.str(2));
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
    if (room_of(path) == kRooms.size()) faults.push_back(path + " is in no room that this test knows");
  for (const auto& [place, from, to] : includes) {
    if (!sources.contains(to)) faults.push_back(place + " is none of the sources");
    if (room_of(to) > room_of(from)) faults.push_back(place + " leads up, from " + kRooms[room_of(from)] + " to " + to);
    if (is_installed(from) && is_private(to)) faults.push_back(place + " is not installed, but " + from + " is");
  }
  return faults;
}

Sources read_project() {
  Sources sources;
  const fs::path root(TAPEGRAD_SOURCES);
  const auto add = [&](const fs::path& file) {
    std::ifstream in(file);
    sources[fs::relative(file, root).string()] = std::string(std::istreambuf_iterator<char>(in), {});
  };
  add(root / "tapegrad.hpp");
  add(root / "testing.hpp");
  add(root / "mpi.hpp");
  for (const char* folder : {"engine", "layers", "optim", "examples"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path ending = entry.path().extension();
      if (ending == ".hpp" || ending == ".cpp" || ending == ".ipp") add(entry.path());
    }
  return sources;
}

TEST_CASE("Includes run downwards through the rooms, in no circle, and private headers stay private") {
  const Sources sources = read_project();
  CHECK(sources.size() > 100);
  CHECK(includes_of(sources).size() > 300);
  for (const std::string& fault : faults_of(sources)) FAIL_CHECK(fault);
}

TEST_CASE("What breaks the order of the rooms is reported by file, line and include") {
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
  CHECK(faults_of({{"layers/linear.hpp", "#include \"report/map.hpp\""}, {"layers/report/map.hpp", ""}}).size() == 1);
  CHECK(faults_of({{"layers/report/map.hpp", "#include \"../linear.hpp\""}, {"layers/linear.hpp", ""}}).empty());
  CHECK(faults_of({{"engine/new/a.hpp", ""}}) == Faults{"engine/new/a.hpp is in no room that this test knows"});
  CHECK(faults_of({{"optim/a.hpp", "#include \"gone.hpp\""}}) ==
        Faults{"optim/a.hpp:1: #include \"gone.hpp\" is none of the sources"});
}

}  // namespace
