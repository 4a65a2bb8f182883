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

/// Writes one self-contained HTML file: every operation of the tape with its formula, values and gradients, grouped
/// into layers by the parameters' paths, to be stepped through forward and backward. Numbers are stored as float.
///
/// Throws std::logic_error if the tape keeps no values, std::invalid_argument if axes or tokens do not fit their value,
/// and std::runtime_error if the file cannot be written; an existing file then stays unchanged.
void save_page(const Tape& tape, const std::filesystem::path& path, const PageOptions& options = {});

/// A page of several steps with a slider, for instance to watch attention form.
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
  /// A page without steps.
  explicit Page(PageOptions options = {}) : options_(std::move(options)) {}

  /// Adds a step. The tape's values stay in memory as long as the page, even after the tape ends. If the tape records
  /// more before save(), the page includes it. Throws like save_page.
  void add(const Tape& tape, PageStep step = {});

  /// Writes the steps added so far into one file. Throws like save_page, and std::logic_error without steps.
  void save(const std::filesystem::path& path) const;

 private:
  PageOptions options_;
  std::vector<detail::RecordedStep> steps_;
};

}  // namespace tapegrad
