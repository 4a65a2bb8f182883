/// The settings of a page and of its steps.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../engine/array/array.hpp"

namespace tapegrad {

/// The labels of one axis of a value, in UTF-8. The page keeps axes with the same name at the same position.
struct PageAxis {
  std::string name{};                 ///< "token"; "" for none
  std::vector<std::string> labels{};  ///< of its indices: "the", "river", "bank"; empty for none
};

/// The axes of values by name. The path of a layer, "" for the whole model, gives axes to the layer's unnamed values of
/// fitting shape; inner layers take precedence. Unknown names are ignored. Attention without PageTokens uses the labels
/// of its queries and keys:
///
///     const PageAxis token{"token", {"the", "river", "bank"}};
///     save_page(tape, "step.html", {.axes = {{"", {{"batch"}, token, {}}}}});  // all values of shape (B, 3, D)
using PageAxes = std::map<std::string, std::vector<PageAxis>>;

/// The tokens of an attention's queries and keys, in UTF-8: one list per batch entry or one for all; empty for none.
struct PageTokens {
  std::vector<std::vector<std::string>> queries{};  ///< T texts in each list
  std::vector<std::vector<std::string>> keys{};     ///< S texts in each list
};

/// The settings of a page.
struct PageOptions {
  std::string title = "A training step";  ///< in UTF-8

  /// The axes of all steps' values.
  PageAxes axes{};

  /// The tokens of all attention in a layer by the layer's path, "" for the whole model. The innermost layer takes
  /// precedence; unknown paths are ignored.
  std::map<std::string, PageTokens> tokens{};

  /// The max number of bytes for numbers on the page. Arrays are averaged down until they fit, the largest first;
  /// attention weights only if they take more than half of the bytes. The page marks these arrays, and still shows
  /// statistics of all their numbers. Each array keeps at least one number.
  std::size_t largest = 8'000'000;
};

/// The settings of one step.
struct PageStep {
  std::string label{};  ///< "step 100"
  PageAxes axes{};      ///< take precedence over the page's

  /// Take precedence over the page's.
  std::map<std::string, PageTokens> tokens{};

  /// The value the page opens at, such as "attention.k_proj.weight"; "" for the beginning, or the NaN found by anomaly
  /// mode. If no value has this name, because no operation reads it, the page opens at the loss.
  std::string opened_at{};
  std::string about{};  ///< an explanation; "" for the text of anomaly mode's error

  /// Gradients by central differences, by the values' names; shown next to the tape's.
  std::map<std::string, Array<double>> numeric{};
};

namespace detail {

class Recording;

/// A step of a page: the recording, kept after its tape ends.
struct RecordedStep {
  std::shared_ptr<const Recording> recorded;
  PageStep settings;
};

}  // namespace detail

}  // namespace tapegrad
