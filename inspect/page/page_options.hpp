/// The settings of a page and of its steps.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../engine/array/array.hpp"

namespace tapegrad {

/// An axis of a value for readers, texts in UTF-8. Axes of one name are looked at in the same place in all arrays.
struct PageAxis {
  std::string name{};                 ///< "token"; "" for none
  std::vector<std::string> labels{};  ///< of its places, as "the", "river", "bank"; empty for none
};

/// The axes of values, by the values' names. Under the path of a layer, "" for the whole model, stand those of the
/// values without a name in it, as far as they fit; an inner layer's go before an outer one's. Names of no value are
/// passed over. Attention that is told no PageTokens takes the labels of its queries and keys:
///
///     const PageAxis token{"token", {"the", "river", "bank"}};
///     save_page(tape, "step.html", {.axes = {{"", {{"batch"}, token, {}}}}});  // of all that are (B, 3, D)
using PageAxes = std::map<std::string, std::vector<PageAxis>>;

/// The tokens that the queries and the keys of an attention stand for, texts in UTF-8: a list for each entry of the
/// batch or one for all; empty for none.
struct PageTokens {
  std::vector<std::vector<std::string>> queries{};  ///< T texts in each list
  std::vector<std::vector<std::string>> keys{};     ///< S texts in each list
};

/// What is told of a whole page.
struct PageOptions {
  std::string title = "A training step";  ///< in UTF-8

  /// Of the values of all steps.
  PageAxes axes{};

  /// The tokens of all attention in a layer, by the layer's path, "" for the whole model. Those of the innermost layer
  /// count; paths of no layer are passed over.
  std::map<std::string, PageTokens> tokens{};

  /// How many bytes the numbers may take on the page. Large arrays are averaged down until they do, the
  /// largest first, and attention's weights only where they take more than half of the bytes; the page says so, and
  /// still tells the mean, the norm and the like of all their numbers. An array keeps at least one number.
  std::size_t largest = 8'000'000;
};

/// What is told of one step of several.
struct PageStep {
  std::string label{};  ///< "step 100"
  PageAxes axes{};      ///< of its values, before those of the page

  /// Of its attention, before those of the page.
  std::map<std::string, PageTokens> tokens{};

  /// The name of the value that the page opens at, "attention.k_proj.weight"; "" for the beginning, or for where
  /// anomaly mode found NaN. When no value has it, as one that nothing reads, the page opens at the loss.
  std::string opened_at{};
  std::string about{};  ///< what there is to see there; "" for the text of anomaly mode's error

  /// Gradients by central differences, by the values' names: shown beside those of the tape.
  std::map<std::string, Array<double>> numeric{};
};

namespace detail {

class Recording;

/// A step of a page: what a tape has recorded, which lives on when the tape ends.
struct RecordedStep {
  std::shared_ptr<const Recording> recorded;
  PageStep told;
};

}  // namespace detail

}  // namespace tapegrad
