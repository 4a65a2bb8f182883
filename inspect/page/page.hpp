/// A training step as a page for a browser.
///
///     tg::Tape tape({.keep_values = true});
///     loss(model, batch).backward();
///     tg::save_page(tape, "step.html", {.title = "The first step"});
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "../../engine/tape/tape.hpp"
#include "page_options.hpp"

namespace tapegrad {

/// Writes one HTML file that needs nothing else: every operation of the tape with its formula, values and gradients,
/// gathered in layers by the parameters' paths, to be stepped through forward and backward. Numbers are kept as float.
///
/// Throws std::logic_error for a tape that keeps no values, std::invalid_argument when axes or tokens do not fit the
/// value that they are of, and std::runtime_error when the file cannot be written; what was there before is then still
/// there.
void save_page(const Tape& tape, const std::filesystem::path& path, const PageOptions& options = {});

/// A page of several steps, with a slider to choose among them: watch attention form.
///
///     tg::Page page({.title = "The first thousand steps"});
///     for (int step = 0; step < 1000; ++step) {
///       const bool shown = step % 100 == 0;
///       tg::Tape tape({.keep_values = shown});
///       ...
///       if (shown) page.add(tape, {.label = "step " + std::to_string(step)});
///     }
///     page.save("training.html");
class Page {
 public:
  /// Without a step as yet.
  explicit Page(PageOptions options = {}) : options_(std::move(options)) {}

  /// Adds a step. What the tape keeps then stays in memory as long as the page, also when the tape has ended; where it
  /// lives on, the page shows what it has recorded when the page is saved. Throws as save_page.
  void add(const Tape& tape, PageStep step = {});

  /// Writes the steps added so far as one file. Throws as save_page, and std::logic_error without any.
  void save(const std::filesystem::path& path) const;

 private:
  PageOptions options_;
  std::vector<detail::RecordedStep> steps_;
};

}  // namespace tapegrad
