/// Computes a model's loss on a text.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "../common/vocabulary.hpp"
#include "../gpt/model.hpp"

/// A part of a text seen at once. Of the predicted ids, the last `scored` are scored here, and the others in an earlier
/// window.
struct Window {
  std::size_t begin, end;  ///< ids begin, ..., end - 1 are the input; begin + 1, ..., end are predicted
  std::size_t scored;
};

/// The windows of a text of `size` ids. Each window after the first advances by half a context, so scored ids have at
/// least half a context before them. Each id except the text's first is scored once.
std::vector<Window> windows_of(std::size_t size, std::size_t context);

/// The sum of -log p over the scored ids, and their number.
struct Score {
  double loss = 0;
  std::size_t tokens = 0;
  double mean() const { return loss / static_cast<double>(tokens); }
};

/// Scores a text of at least two ids. The model must be in evaluation mode. Calls `report` after each window.
/// Distributes the windows over the ranks.
Score score(const LanguageModel<>& model, std::size_t context, std::span<const std::int64_t> ids,
            const std::function<void(std::size_t window, const Score& of_window)>& report = {});

/// Throws std::runtime_error, naming the weights file, if the loss is not finite: the weights are invalid.
void require_finite(double loss, const std::filesystem::path& folder);
