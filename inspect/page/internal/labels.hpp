/// What the places along axes are called on a page. For the library's own sources.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../../../engine/array/shape.hpp"
#include "../page_options.hpp"
#include "json.hpp"

namespace tapegrad::detail {

/// The axes and tokens that a step and its page were told; the step's go before the page's. Refers to both.
class Labels {
 public:
  using Axes = std::vector<PageAxis>;

  Labels(const PageStep& step, const PageOptions& page) : step_(step), page_(page) {}

  /// The axes of the value with that name; null where none were told. Throws std::invalid_argument when they do not
  /// fit.
  const Axes* of_value(const std::string& name, const Shape& shape) const;

  /// Those of a value without a name: of the innermost layer around it whose axes fit, null for none.
  const Axes* in_layer(std::string layer, const Shape& shape) const;

  /// Adds "queries" or "keys" to an attention with that many of them: the tokens told for the innermost layer around
  /// it, or else the labels of what it reads, which has the axes `read`, null for none. Throws std::invalid_argument
  /// when they do not fit.
  void add_tokens(JsonObject& attention, bool queries, const std::string& layer, const Axes* read, std::size_t batch,
                  std::size_t count) const;

 private:
  PageTokens tokens_in(const std::string& layer) const;

  const PageStep& step_;
  const PageOptions& page_;
};

/// Writes axes into a node of the page, if there are any.
void add_axes(JsonObject& node, const Labels::Axes* axes);

}  // namespace tapegrad::detail
