/// Runs an example from a shell, like its users.
#pragma once

#include <doctest/doctest.h>
#include <paths.hpp>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "temporary_folder.hpp"

struct Run {
  int status;
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

/// Expects one short line from the program, and exit status 1.
inline void check_message(const Run& run, const std::string& program, const std::string& words) {
  CAPTURE(run.err.substr(0, 2000));
  CHECK(run.status == 1);
  CHECK(run.err.starts_with(program + ": "));
  CHECK(run.err.find('\n') == run.err.size() - 1);
  CHECK(run.err.size() < 1000);
  CHECK(run.err.find(words) != std::string::npos);
}

inline const std::vector<std::string> kTutorials{"contextual_embedding", "masking", "attention_levels",
                                                 "cross_attention", "manual_backward"};

inline bool gnuplot_is_installed() { return std::system("command -v gnuplot >/dev/null") == 0; }

/// Expects a run with --explain to finish by drawing a picture or, without gnuplot, to print the package to install.
inline void check_drawn(const Run& run, const std::string& picture) {
  const bool gnuplot = gnuplot_is_installed();
  CAPTURE(run.err);
  CHECK(run.status == (gnuplot ? 0 : 1));
  CHECK((run.out.find("picture of the weights: " + picture) != std::string::npos) == gnuplot);
  CHECK((run.err.find("apt-get install gnuplot-nox") == std::string::npos) == gnuplot);
}

/// Runs shell commands, with the programs' folder in $examples.
inline Run run_shell(const std::string& commands) {
  const TemporaryFolder folder;
  const std::string line =
      "examples='" TAPEGRAD_EXAMPLES "'; { " + commands + "\n} >" + folder.path("out") + " 2>" + folder.path("err");
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("out"), folder.read("err")};
}

inline Run run_example(const std::string& program_and_arguments) {
  return run_shell("$examples/" + program_and_arguments);
}

/// Arguments that a program refuses, and words of its message.
struct Refused {
  std::string arguments, words;
};

/// Expects one short line, as check_message, from a program, or a program and its first arguments, for each row.
inline void check_refusals(const std::string& program, const std::vector<Refused>& rows) {
  for (const auto& [arguments, words] : rows) {
    const std::string command = program + ' ' + arguments;
    CAPTURE(command);
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
