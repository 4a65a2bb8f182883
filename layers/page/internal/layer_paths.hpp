/// Layers by their paths, "blocks.0.attention". For the library's own sources.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tapegrad::detail {

/// The path of the layer containing a parameter or layer: "blocks.0" for "blocks.0.norm1".
std::string layer_of(const std::string& path);

/// The common prefix of two paths: "blocks.0" for "blocks.0.norm1" and "blocks.0.attention.q_proj".
std::string common_layer(const std::string& a, const std::string& b);

/// The layers of operations, given the layers of those with parameters. An operation without parameters belongs to the
/// common layer of the nearest ones before and after it. If this is a list of layers or nothing, it belongs to the
/// numbered layer of the one before: a block often ends with a sum.
std::vector<std::string> layers_of(const std::vector<std::optional<std::string>>& of_parameters);

}  // namespace tapegrad::detail
