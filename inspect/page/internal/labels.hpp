/// The labels along axes on a page. For the library's own sources.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../../../engine/array/array.hpp"
#include "../page_options.hpp"
#include "json.hpp"

namespace tapegrad::detail {

/// The axes and tokens of a step and its page; the step's take precedence. Refers to both.
class Labels {
 public:
  using Axes = std::vector<PageAxis>;

  Labels(const PageStep& step, const PageOptions& page) : step_(step), page_(page) {}

  /// The axes of the named value, or null. Throws std::invalid_argument if they do not fit.
  const Axes* of_value(const std::string& name, const Shape& shape) const;

  /// The axes of an unnamed value: from the innermost enclosing layer whose axes fit, or null.
  const Axes* in_layer(std::string layer, const Shape& shape) const;

  /// Adds `count` "queries" or "keys" to an attention: the tokens of the innermost enclosing layer, or else the labels
  /// of its input with the axes `read` (may be null). Throws std::invalid_argument if they do not fit.
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
