/// Runs test cases of this program in processes of their own: what may crash or hang, and what needs an environment.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "run_example.hpp"

/// Runs one test case of this program, also one that is skipped, ended by a signal when it takes longer than `seconds`.
/// `before` are a shell's words before the command, as "VARIABLE=value ".
inline Run run_case(const std::string& name, const std::string& before = "", int seconds = 300) {
  const std::string self = "/proc/" + std::to_string(getpid()) + "/exe";
  return run_shell(before + "timeout -s KILL " + std::to_string(seconds) + " " + self + " --no-skip --test-case='" +
                   name + "'");
}

inline void check_runs(const std::string& name, const std::string& before = "", int seconds = 300) {
  const Run run = run_case(name, before, seconds);
  CAPTURE(run.out);
  CAPTURE(run.err);
  CHECK(run.status == 0);
  CHECK(run.out.find(" 1 passed") != std::string::npos);
}
