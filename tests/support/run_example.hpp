/// Runs an example from a shell, like its users.
#pragma once

#include <doctest/doctest.h>
#include <paths.hpp>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "listener.hpp"
#include "temporary_folder.hpp"
#include "text.hpp"

struct Run {
  int status = 0;
  std::string out, err;

  /// The output from these words on; empty if they are not printed.
  std::string out_from(const std::string& words) const {
    const std::size_t start = out.find(words);
    return start == out.npos ? "" : out.substr(start);
  }

  /// The numbers printed after each occurrence of these words.
  std::vector<double> numbers_after(const std::string& words) const {
    std::vector<double> numbers;
    for (std::size_t at = 0; (at = out.find(words, at)) != out.npos;)
      numbers.push_back(std::stod(out.substr(at += words.size())));
    return numbers;
  }

  /// The number after the first, or NaN.
  double number_after(const std::string& words) const {
    const std::string found = out_from(words);
    return found.empty() ? NAN : std::stod(found.substr(words.size()));
  }
};

/// A test case's last run, and its commands.
inline Run last_run;
inline std::string last_commands;

/// Prints the last run's commands and output below the first failed check after it.
class LastRunPrinter : public Listener {
 public:
  explicit LastRunPrinter(const doctest::ContextOptions&) {}
  void test_case_start(const doctest::TestCaseData&) override { last_commands.clear(); }
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void log_assert(const doctest::AssertData& check) override {
    if (!check.m_failed || last_commands.empty()) return;
    std::cout << "last commands: " << last_commands.substr(0, 2000) << '\n'
              << last_run.out.substr(0, 5000) << last_run.err.substr(0, 2000) << std::flush;
    last_commands.clear();
  }
};
REGISTER_LISTENER("last_run", 2, LastRunPrinter);

/// Expects one short line from the program, and exit status 1.
inline void check_message(const Run& run, const std::string& program, const std::string& words) {
  CHECK(run.status == 1);
  CHECK(run.err.starts_with(program + ": "));
  CHECK(run.err.find('\n') == run.err.size() - 1);
  CHECK(run.err.size() < 1000);
  CHECK(contains(run.err, words));
}

inline const std::vector<std::string> kTutorials{"contextual_embedding", "masking", "attention_levels",
                                                 "cross_attention", "manual_backward"};

inline bool gnuplot_is_installed() { return std::system("command -v gnuplot >/dev/null") == 0; }

/// Expects a run with --explain to finish by drawing a picture or, without gnuplot, to print the package to install.
inline void check_drawn(const Run& run, const std::string& picture) {
  const bool gnuplot = gnuplot_is_installed();
  CHECK(run.status == (gnuplot ? 0 : 1));
  CHECK(contains(run.out, "picture of the weights: " + picture) == gnuplot);
  CHECK(contains(run.err, "apt-get install gnuplot-nox") != gnuplot);
}

/// Runs shell commands, with the programs' folder in $examples.
inline Run run_shell(const std::string& commands) {
  const TemporaryFolder folder;
  const std::string line =
      "examples='" TAPEGRAD_EXAMPLES "'; { " + commands + "\n} >" + folder.path("out") + " 2>" + folder.path("err");
  const int status = std::system(line.c_str());
  last_commands = commands;
  return last_run = {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("out"), folder.read("err")};
}

inline Run run_example(const std::string& program_and_arguments) {
  return run_shell("$examples/" + program_and_arguments);
}

/// The same, for a program that succeeds without messages.
inline Run run_well(const std::string& program_and_arguments) {
  const Run run = run_example(program_and_arguments);
  CHECK(run.err == "");
  REQUIRE(run.status == 0);
  return run;
}

/// Arguments that a program refuses, and words of its message.
struct Refused {
  std::string arguments, words;
};

/// Expects one short line, as check_message, from a program, or a program and its first arguments, for each row.
inline void check_refusals(const std::string& program, const std::vector<Refused>& rows) {
  for (const auto& [arguments, words] : rows) {
    const std::string command = program + ' ' + arguments;
    check_message(run_example(command), command.substr(0, command.find(' ')), words);
  }
}

/// The same as run_example, with a Ctrl-C after a line of output begins with these words.
inline Run run_interrupted_at(const std::string& words, const std::string& program_and_arguments) {
  const TemporaryFolder folder;
  const std::string out = folder.path("out");
  return run_shell("$examples/" + program_and_arguments + " >" + out + " & program=$!\n" + "until grep -qs '^" + words +
                   "' " + out + "; do sleep 0.05; done\n" + "kill -INT $program; wait $program; status=$?; cat " + out +
                   "; exit $status");
}
