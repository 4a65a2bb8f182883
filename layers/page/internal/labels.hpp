/// Axis names and labels on a page. For the library's own sources.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../../../engine/array/shape.hpp"
#include "../page_options.hpp"
#include "json.hpp"

namespace tapegrad::detail {

/// The axes and tokens given for a step and its page; the step's take precedence. Keeps references to both.
class Labels {
 public:
  using Axes = std::vector<PageAxis>;

  Labels(const PageStep& step, const PageOptions& page) : step_(step), page_(page) {}

  /// The axes given for a named value; null for none. Throws std::invalid_argument if they do not fit.
  const Axes* of_value(const std::string& name, const Shape& shape) const;

  /// The axes of an unnamed value: from the innermost enclosing layer with axes that fit; null for none.
  const Axes* in_layer(std::string layer, const Shape& shape) const;

  /// Adds "queries" or "keys" to an attention with `count` of them: the tokens given for the innermost enclosing layer,
  /// or else the labels of the input with axes `read` (null for none). Throws std::invalid_argument if they do not fit.
  void add_tokens(JsonObject& attention, bool queries, const std::string& layer, const Axes* read, std::size_t batch,
                  std::size_t count) const;

 private:
  PageTokens tokens_in(const std::string& layer) const;

  const PageStep& step_;
  const PageOptions& page_;
};

/// Writes axes, if any, into a node of the page.
void add_axes(JsonObject& node, const Labels::Axes* axes);

}  // namespace tapegrad::detail
