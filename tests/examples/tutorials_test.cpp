#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../examples/common/tutorial.hpp"
#include "page_data.hpp"
#include "run_example.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using page::named;

namespace {

/// Captures standard output while f runs.
template <class F> std::string printed_by(const F& f) {
  struct Redirected {
    std::ostringstream text;
    std::streambuf* before = std::cout.rdbuf(text.rdbuf());
    ~Redirected() { std::cout.rdbuf(before); }
  } out;
  f();
  return out.text.str();
}

/// The text between `first` and `last`, or to the end; empty if `first` is missing.
std::string between(const std::string& text, const std::string& first, const std::string& last) {
  const std::size_t found = text.find(first);
  if (found == text.npos) return "";
  const std::size_t start = found + first.size();
  return text.substr(start, text.find(last, start) - start);
}

/// Removes the differences between agreeing results, because they depend on the processor.
std::string without_differences(const std::string& text) {
  static const std::regex agreement(R"((0|[0-9.e-]+ at \([0-9, ]*\)) +(exact|close))");
  return std::regex_replace(text, agreement, "agrees");
}

}  // namespace

TEST_CASE(
    "Every tutorial is repeatable with a seed and with a page, changes with the seed, and fits into 100 columns") {
  const TemporaryFolder folder;
  for (const std::string& program : kTutorials) {
    const Run zero = run_well(program), again = run_well(program + " --seed 0 --page " + folder.path("page.html")),
              other = run_well(program + " --seed 18446744073709551615");
    CHECK(zero.out == again.out);
    CHECK(zero.out != other.out);
    CHECK(folder.read("page.html").starts_with("<!DOCTYPE html>"));
    std::istringstream lines(zero.out);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
  }
}

TEST_CASE("Every tutorial has --help, and refuses unknown options in one line") {
  for (const std::string& program : kTutorials) {
    const Run help = run_well(program + " --help");
    CHECK(contains(help.out, "--seed N"));
    CHECK(contains(help.out, "--page FILE"));
    for (const char* wrong : {" --seed -1", " --seed 1.5", " --seed", " --sed 1", " 1", " --page none/page.html"}) {
      const Run run = run_example(program + wrong);
      check_message(run, program, "");
      CHECK(run.out == "");
    }
  }
}

TEST_CASE("examples/README.md shows a part of each tutorial's output") {
  std::ifstream file(TAPEGRAD_SOURCES "/examples/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const std::string& program : kTutorials) {
    const std::string section = between(readme, "## " + program + "\n", "\n## "),
                      shown = without_differences(between(section, "```text\n", "```"));
    REQUIRE(shown != "");
    CHECK(contains(without_differences(run_example(program).out), shown));
  }
}

TEST_CASE("show aligns matrices side by side under their names, with labels") {
  const std::string text = printed_by([] {
    examples::show_together({{"a", Array{{1, -2.5}, {-0.001, 1e20}}}, {"mask", tg::BoolArray(tg::Shape{2, 1}, true)}},
                            {.decimals = 1, .rows = {"x", "longer"}});
  });
  CHECK(text ==
        "\n"
        "a (2, 2)                 mask (2, 1)\n"
        "  x         1.0   -2.5     1\n"
        "  longer    0.0  1e+20     1\n");
}

TEST_CASE("show prints the matrices of an array of four axes in rows, each under its indices") {
  const std::string text = printed_by([] {
    examples::show("a", Array{{{{1, 2}}, {{3, 4}}}, {{{5, 6}}, {{7, std::numeric_limits<double>::quiet_NaN()}}}},
                   {.decimals = 0});
  });
  CHECK(text ==
        "\n"
        "a (2, 2, 1, 2)\n"
        "  [0, 0]     [0, 1]\n"
        "  1  2       3  4\n"
        "  [1, 0]     [1, 1]\n"
        "  5  6         7  nan\n");
}

TEST_CASE("show rounds ties away from zero, however they were computed") {
  for (const double tie : {0.15715, -0.15715}) {
    const double shown = std::copysign(0.1572, tie);
    for (const double towards : {-1.0, 1.0})
      CHECK(contains(printed_by([&] { examples::show("a", Array{std::nextafter(tie, towards)}, {}); }),
                     std::to_string(shown).substr(0, tie < 0 ? 7 : 6)));
  }
}

TEST_CASE("A comparison prints the largest differences, and fails for different numbers and NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  examples::Comparison equal(1e-3);
  equal.add("small", "one way", Array{1, 2}, Array{1, 2.0005});
  equal.add("large", "", Array{2000}, Array{2001});  // relative to values above 1
  CHECK(printed_by([&] { examples::finish(equal); }) ==
        "\n"
        "                          largest difference\n"
        "  small   one way   (2)   0.0005 at (1)        close\n"
        "  large             (1)   1 at (0)             close\n");
  for (const double wrong : {1.002, nan}) {
    examples::Comparison different(1e-3);
    different.add("x", "", Array{1}, Array{wrong});
    const std::string text = printed_by([&] { CHECK_THROWS_AS(examples::finish(different), std::runtime_error); });
    CHECK(contains(text, "WRONG"));
  }
  CHECK_FALSE(equal.add("x", "", Array{1}, Array{1, 2}));
}

// ---- pages written by --page FILE -----------------------------------------------------------------------------------

namespace {

using nlohmann::json;
using Names = std::set<std::string>;

/// The steps of a tutorial's page.
json steps_of(const std::string& program) {
  const TemporaryFolder folder;
  run_well(program + " --page " + folder.path("page.html"));
  return page_data(folder.read("page.html"))["steps"];
}

std::vector<std::string> labels_of(const json& steps) {
  std::vector<std::string> labels;
  for (const json& step : steps) labels.push_back(step["label"]);
  return labels;
}

/// The names of all values in a step.
Names names_in(const json& step) {
  Names names;
  for (const json& node : step["nodes"])
    if (node["name"] != "") names.insert(node["name"].get<std::string>());
  return names;
}

std::size_t nan_in(const json& node) { return node["value"]["statistics"]["nan"]; }

}  // namespace

TEST_CASE("contextual_embedding's page leads from the table to attention, with the words of both sentences") {
  const json steps = steps_of("contextual_embedding");
  CHECK(labels_of(steps) ==
        std::vector<std::string>{
            "1. One vector for each word: the river bank", "1. One vector for each word: the money bank",
            "2. The mean of the context added: the river bank", "2. The mean of the context added: the money bank",
            "4. Softmax by hand: the river bank", "4. Large scores, wrong: as written",
            "4. Large scores, right: largest subtracted first", "5. Attention without projections: the river bank",
            "5. Attention without projections: the money bank", "6. Attention with projections: the river bank"});
  CHECK(names_in(steps[0]) == Names{"table", "X"});
  CHECK(names_in(steps[2]) == Names{"X", "mean", "output"});
  CHECK(names_in(steps[4]) == Names{"scores", "e", "sum", "weights"});
  CHECK(names_in(steps[7]) == Names{"X", "scores", "m", "e", "sum", "weights", "output"});
  CHECK(names_in(steps[9]) ==
        Names{"X", "Wq", "Wk", "Wv", "Q", "K", "V", "scores", "m", "e", "sum", "weights", "output"});
  CHECK(named(steps[0], "table")["axes"] ==
        json::parse(R"([["the", "river", "money", "bank"], ["water", "money", "grammar"]])"));
  CHECK(named(steps[1], "X")["axes"][0] == json{"the", "money", "bank"});
  CHECK(named(steps[9], "weights")["axes"] == json::parse(R"([["the", "river", "bank"], ["the", "river", "bank"]])"));
  CHECK(named(steps[9], "weights")["axis_names"] == json{"query", "key"});
  CHECK(nan_in(named(steps[5], "weights")) > 0);
  CHECK(nan_in(named(steps[6], "weights")) == 0);
}

TEST_CASE("masking's page shows each mistake next to the correct version, with their different gradients") {
  const json steps = steps_of("masking");
  CHECK(labels_of(steps) ==
        std::vector<std::string>{
            "1. Wrong: scores * mask", "1. Right: -inf where mask == 0", "2. fill -10000", "2. fill -1e20",
            "2. fill -inf", "2. masked_softmax", "3. The causal triangle: what the depends on",
            "3. The causal triangle: what cat depends on", "3. The causal triangle: what sat depends on",
            "3. The causal triangle: what down depends on", "4. Padding mask", "4. Padding mask * causal mask",
            "5. Wrong: scores == 0", "5. Right: mask == 0", "6. Wrong: a mask of (2, 3, 3)",
            "6. Right: a mask of (2, 1, 3, 3)"});
  CHECK(names_in(steps[0]) == Names{"scores", "mask", "masked", "weights", "V", "output"});
  CHECK(names_in(steps[1]) == Names{"scores", "masked", "weights", "V", "output"});
  CHECK(named(steps[0], "mask")["axes"] == json::parse(R"([["sat"], ["the", "cat", "sat", "[pad]"]])"));
  CHECK(named(steps[0], "V")["gradient"]["statistics"]["zeros"] == 0);
  CHECK(named(steps[1], "V")["gradient"]["statistics"]["zeros"] == 1);
  CHECK(nan_in(named(steps[4], "weights")) == 4);
  CHECK(nan_in(named(steps[5], "weights")) == 0);
  for (std::size_t word = 0; word < 4; ++word)  // two numbers for each later word
    CHECK(named(steps[6 + word], "X")["gradient"]["statistics"]["zeros"] == 2 * (3 - word));
  CHECK(named(steps[10], "scores")["axes"] == json::parse(R"([["the cat sat", "the dog ran home"], null, null])"));
  CHECK(named(steps[14], "weights")["axis_names"] == json{"batch", "head", "query", "key"});
}

TEST_CASE("attention_levels' page leads through the levels to the library's layer, with its tokens") {
  const json steps = steps_of("attention_levels");
  CHECK(labels_of(steps) ==
        std::vector<std::string>{"1. Level 1: three projections", "2. Level 2: one fused projection",
                                 "3. Level 3: a padding mask", "3. Level 3: dropout of the weights, in training",
                                 "4. Level 4: several heads", "5. Level 4 again, width 128", "5. The library's layer"});
  CHECK(named(steps[0], "X")["kind"] == "constant");
  CHECK(named(steps[0], "weights")["axis_names"] == json{"batch", "query", "key"});
  CHECK(named(steps[0], "weights")["axes"][2] == json{"token 0", "token 1"});
  CHECK(named(steps[4], "weights")["axis_names"] == json{"batch", "head", "query", "key"});
  CHECK(named(steps[4], "X")["gradient"].is_object());
  for (const json& node : steps[6]["nodes"]) {
    if (!node.contains("attention")) continue;
    CHECK(node["operation"] == "multi_head_attention");
    for (const char* side : {"queries", "keys"})
      CHECK(node["attention"][side][1] == json{"token 0", "token 1", "[pad]", "[pad]"});
  }
}

TEST_CASE("cross_attention's page names queries and keys, and ends with the library's layer") {
  const json steps = steps_of("cross_attention");
  CHECK(labels_of(steps) ==
        std::vector<std::string>{
            "1. Heads split and merged", "1. Wrong: one reshape",
            "2. Queries of one sequence, keys and values of another", "3. A valid length for each entry",
            "3. A valid length for each query", "4. Dropout 0.5 of the weights, in training", "5. The textbook's run",
            "6. By hand, lengths (batch,)", "6. The library's layer, lengths (batch,)",
            "6. By hand, lengths (batch, queries)", "6. The library's layer, lengths (batch, queries)"});
  CHECK(names_in(steps[0]) == Names{"X", "cut", "heads", "together", "merged"});
  CHECK(names_in(steps[2]) == Names{"queries", "keys", "W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight", "cut",
                                    "q", "k", "v", "scores", "masked", "weights", "together", "output"});
  CHECK(named(steps[2], "scores")["axes"] ==
        json::parse(R"([null, null, ["query 0", "query 1"], ["key 0", "key 1", "key 2", "key 3"]])"));
  CHECK(named(steps[2], "queries")["axis_names"] == json{"batch", "query", ""});
  CHECK(named(steps[2], "keys")["axis_names"] == json{"batch", "key", ""});
  CHECK(named(steps[2], "scores")["shape"] == json{2, 2, 2, 4});
  CHECK(steps[2]["loss"] == -1);
  CHECK(named(steps[4], "keys")["gradient"].is_object());
  CHECK(named(steps[6], "Y")["kind"] == "constant");
  std::size_t layers = 0;
  for (const json& step : steps)
    for (const json& node : step["nodes"])
      if (node.contains("attention")) {
        ++layers;
        CHECK(node["attention"]["keys"][0][5] == "key 5");
      }
  CHECK(layers == 2);
}

TEST_CASE("manual_backward's page shows both computations, under the names of the tables") {
  const json steps = steps_of("manual_backward");
  CHECK(labels_of(steps) == std::vector<std::string>{"one head", "several heads"});
  CHECK(names_in(steps[0]) == Names{"X", "Wq", "Wk", "Wv", "Wo", "Q", "K", "V", "S", "P", "Z", "O", "Y", "L"});
  CHECK(names_in(steps[1]) == Names{"X", "Wq", "Wk", "Wv", "Wo", "bq", "bk", "bv", "bo", "q", "k", "v",
                                    "Q", "K",  "V",  "S",  "M",  "P",  "Z",  "z",  "O",  "Y", "L"});
  CHECK(named(steps[1], "bk")["gradient"]["statistics"]["norm"] < 1e-12);
}
