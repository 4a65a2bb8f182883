/// Layers by their paths, "blocks.0.attention". For the library's own sources.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tapegrad::detail {

/// The path of the layer that a parameter or a layer is in: "blocks.0" of "blocks.0.norm1".
std::string layer_of(const std::string& path);

/// The path that two layers' paths begin with: "blocks.0" of "blocks.0.norm1" and "blocks.0.attention.q_proj".
std::string common_layer(const std::string& a, const std::string& b);

/// The layers that operations belong to, given the layer of each that reads parameters and nothing for others. An
/// operation that reads none is in what the nearest ones before and after it have in common, or, where that is a list
/// of layers or nothing, in the numbered layer that the one before is in: a block often ends with a sum.
std::vector<std::string> layers_of(const std::vector<std::optional<std::string>>& of_parameters);

}  // namespace tapegrad::detail
