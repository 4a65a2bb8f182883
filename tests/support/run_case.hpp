/// Runs test cases of this program in child processes, if they may crash or hang or need environment variables.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "run_example.hpp"

/// Runs one test case of this program, even a skipped one; kills it after `seconds`. `before` are shell words before
/// the command, such as "VARIABLE=value ".
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
