/// What tapes recorded as a page's data. For the library's own sources.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../page_options.hpp"

namespace tapegrad::detail {

/// The path that two layers' paths begin with: "blocks.0" of "blocks.0.norm1" and "blocks.0.attention.q_proj".
std::string common_layer(const std::string& a, const std::string& b);

/// The layers that operations belong to, given the layer of each that reads parameters and nothing for others. An
/// operation that reads none is in what the nearest ones before and after it have in common, or, where that is a list
/// of layers or nothing, in the numbered layer that the one before is in: a block often ends with a sum.
std::vector<std::string> layers_of(const std::vector<std::optional<std::string>>& of_parameters);

/// {"version", "title", "left_out", "steps"} of tapes that keep values.
nlohmann::json page_json(std::span<const RecordedStep> steps, const PageOptions& options);

}  // namespace tapegrad::detail
