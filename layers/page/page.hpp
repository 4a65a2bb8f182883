/// A training step as a page for a browser.
///
///     tg::Tape tape({.keep_values = true});
///     loss(model, batch).backward();
///     tg::save_page(tape, "step.html", {.title = "The first step"});
#pragma once

#include <filesystem>

#include "../../engine/tape/tape.hpp"
#include "page_options.hpp"

namespace tapegrad {

/// Writes one HTML file that needs nothing else: every operation of the tape with its formula, values and gradients,
/// gathered in layers by the parameters' paths, to be stepped through forward and backward. Numbers are kept as float.
///
/// Throws std::logic_error for a tape that keeps no values, std::invalid_argument when axes do not fit the value that
/// they are of, and std::runtime_error when the file cannot be written; what was there before is then still there.
void save_page(const Tape& tape, const std::filesystem::path& path, const PageOptions& options = {});

}  // namespace tapegrad
