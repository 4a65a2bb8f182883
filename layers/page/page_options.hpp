/// The settings of a page.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace tapegrad {

/// An axis of a value for readers, texts in UTF-8. Axes of one name are looked at in the same place in all arrays.
struct PageAxis {
  std::string name{};                 ///< "token"; "" for none
  std::vector<std::string> labels{};  ///< of its places, as "the", "river", "bank"; empty for none
};

struct PageOptions {
  std::string title = "A training step";

  /// The axes of values, by the values' names. Names of no value are passed over.
  std::map<std::string, std::vector<PageAxis>> axes{};

  /// How many bytes the numbers may take on the page. Large arrays are averaged down until they do; the page says so,
  /// and still tells the mean, the norm and the like of all their numbers.
  std::size_t largest = 8'000'000;
};

}  // namespace tapegrad
