/// Options of a page and its steps.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../engine/array/array.hpp"

namespace tapegrad {

/// Names for an axis of a value, in UTF-8. Axes with the same name share one selected index on the page.
struct PageAxis {
  std::string name{};                 ///< "token"; "" for none
  std::vector<std::string> labels{};  ///< one per index, such as "the", "river", "bank"; empty for none
};

/// The axes of values, by the values' names. The path of a layer, "" for the whole model, gives axes to unnamed values
/// in it if they fit; inner layers take precedence. Unknown names are ignored. Attention without PageTokens uses the
/// labels of its queries and keys:
///
///     const PageAxis token{"token", {"the", "river", "bank"}};
///     save_page(tape, "step.html", {.axes = {{"", {{"batch"}, token, {}}}}});  // of all values of shape (B, 3, D)
using PageAxes = std::map<std::string, std::vector<PageAxis>>;

/// The tokens at an attention's queries and keys, in UTF-8: a list for each batch entry, or one for all.
struct PageTokens {
  std::vector<std::vector<std::string>> queries{};  ///< T texts in each list
  std::vector<std::vector<std::string>> keys{};     ///< S texts in each list
};

/// Options of a page.
struct PageOptions {
  std::string title = "A training step";  ///< in UTF-8

  /// Axes of values in all steps.
  PageAxes axes{};

  /// The tokens of all attention in a layer, by the layer's path, "" for the whole model. Inner layers take precedence;
  /// unknown paths are ignored.
  std::map<std::string, PageTokens> tokens{};

  /// Maximum number of bytes for arrays on the page. Larger pages average arrays down, the largest first, and attention
  /// weights only if they exceed half of the bytes. The page says so; its statistics (mean, norm, ...) are still of
  /// all numbers. An array keeps at least one number.
  std::size_t largest = 8'000'000;
};

/// Options of one step.
struct PageStep {
  std::string label{};  ///< "step 100"
  PageAxes axes{};      ///< of its values; take precedence over the page's

  /// The tokens of its attention; take precedence over the page's.
  std::map<std::string, PageTokens> tokens{};

  /// The page opens at the value with this name, such as "attention.k_proj.weight"; "" for the operation with NaN found
  /// by anomaly mode, or else the beginning. If the tape has no such value, because no operation reads it, the page
  /// opens at the loss.
  std::string opened_at{};
  std::string about{};  ///< a message to show there; "" for anomaly mode's error

  /// Gradients by central differences, by the values' names: shown next to the tape's.
  std::map<std::string, Array<double>> numeric{};
};

namespace detail {

class Recording;

/// A step of a page. Shares ownership of the tape's recording.
struct RecordedStep {
  std::shared_ptr<const Recording> recorded;
  PageStep told;
};

}  // namespace detail

}  // namespace tapegrad
