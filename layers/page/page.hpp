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

/// Writes a self-contained HTML file to step through the tape forward and backward: every operation with its formula,
/// values and gradients, grouped in layers by the parameters' paths. Numbers are stored as float.
///
/// Throws std::logic_error for a tape without keep_values, std::invalid_argument if axes or tokens do not fit their
/// value, and std::runtime_error if the file cannot be written; the previous file is then intact.
void save_page(const Tape& tape, const std::filesystem::path& path, const PageOptions& options = {});

/// A page of several steps with a slider, for example to watch attention form.
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

  /// Adds a step. Shares ownership of the tape's recording, also after the tape ends; operations recorded between add()
  /// and save() are included. Throws like save_page.
  void add(const Tape& tape, PageStep step = {});

  /// Writes the steps added so far to one file. Throws like save_page, and std::logic_error without any.
  void save(const std::filesystem::path& path) const;

 private:
  PageOptions options_;
  std::vector<detail::RecordedStep> steps_;
};

}  // namespace tapegrad
