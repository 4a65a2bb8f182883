/// Runs the program gpt2 on the small models of fixtures/gpt2.json.
#pragma once

#include <doctest/doctest.h>
#include <paths.hpp>

#include <string>

#include "../support/run_example.hpp"
#include "../support/temporary_folder.hpp"
#include "checkpoint_folder.hpp"

inline const std::string kText = TAPEGRAD_SOURCES "/tests/gpt2/text.txt";

/// A folder of the model, at the path `model`.
struct Published {
  TemporaryFolder folder;
  std::string model = folder.path("model");

  explicit Published(const std::string& name = "gpt2") { CheckpointFolder(name).write(model); }

  Run run(const std::string& arguments) const { return run_example("gpt2 " + model + ' ' + arguments); }

  /// Expects one short line with the words, and exit status 1.
  void refuses(const std::string& arguments, const std::string& words) const {
    check_refusals("gpt2 " + model, {{arguments, words}});
  }

  /// The number after some printed words.
  static double number(const Run& run, const std::string& words) {
    CAPTURE(run.out);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    REQUIRE(run.out.find(words) != run.out.npos);
    return run.number_after(words);
  }
  double perplexity(const std::string& arguments) const {
    return number(run(arguments + " --score " + kText), "perplexity ");
  }
};

/// The options of a short run, without those for a text.
inline std::string short_run(int steps = 20, double lr = 0.01) {
  return " --steps " + std::to_string(steps) + " --lr " + std::to_string(lr) +
         " --batch-size 4 --context 24 --decay none --warmup 0 --length 1 ";
}
