/// How well a model knows a text.
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

/// A part of a text that a model sees at once, and which of its ids are scored there: those after place `begin` up to
/// `end`, of which the last ones, `scored`, are scored here and not in a window before.
struct Window {
  std::size_t begin, end;  ///< ids begin, ..., end - 1 are seen; begin + 1, ..., end are to be said
  std::size_t scored;
};

/// The windows of a text of `size` ids: those after the first begin half a context further on each, so that what is
/// scored follows half a context or more, and each id but the text's first is scored once.
std::vector<Window> windows_of(std::size_t size, std::size_t context);

/// The sum of -log p of the ids but the first, and how many these are.
struct Score {
  double loss = 0;
  std::size_t tokens = 0;
  double mean() const { return loss / static_cast<double>(tokens); }
};

/// Scores a text of two ids or more by a model that is switched to evaluation; `report` is called after each window.
/// Several ranks score it together.
Score score(const LanguageModel<>& model, std::size_t context, std::span<const std::int64_t> ids,
            const std::function<void(std::size_t window, const Score& of_window)>& report = {});

/// Throws std::runtime_error, naming the folder's weights, for a loss that is not finite, as they are not then.
void require_finite(double loss, const std::filesystem::path& folder);
