/// Converts recordings to a page's data. For the library's own sources.
#pragma once

#include <span>

#include "../page_options.hpp"
#include "json.hpp"

namespace tapegrad::detail {

/// {"version", "title", "left_out", "steps"} of tapes with keep_values.
Json page_json(std::span<const RecordedStep> steps, const PageOptions& options);

}  // namespace tapegrad::detail
