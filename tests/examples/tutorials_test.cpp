#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>

#include "../../examples/common/tutorial.hpp"
#include "run_example.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;

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

TEST_CASE("Every tutorial is repeatable with a seed, changes with it, and fits into 100 columns") {
  for (const std::string& program : kTutorials) {
    CAPTURE(program);
    const Run zero = run_example(program), again = run_example(program + " --seed 0"),
              other = run_example(program + " --seed 18446744073709551615");
    CHECK(zero.status == 0);
    CHECK(zero.err == "");
    CHECK(zero.out == again.out);
    CHECK(zero.out != other.out);
    std::istringstream lines(zero.out);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
  }
}

TEST_CASE("Every tutorial has --help, and refuses unknown options in one line") {
  for (const std::string& program : kTutorials) {
    CAPTURE(program);
    const Run help = run_well(program + " --help");
    CHECK(contains(help.out, "--seed N"));
    CHECK(contains(help.out, "--page FILE"));
    for (const char* wrong : {" --seed -1", " --seed 1.5", " --seed", " --sed 1", " 1", " --page none/page.html"}) {
      CAPTURE(wrong);
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
    CAPTURE(program);
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
