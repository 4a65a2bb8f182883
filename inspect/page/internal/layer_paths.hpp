/// Paths of layers, such as "blocks.0.attention". For the library's own sources.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tapegrad::detail {

/// The path of the enclosing layer: "blocks.0" for "blocks.0.norm1".
std::string layer_of(const std::string& path);

/// The common beginning of two paths: "blocks.0" for "blocks.0.norm1" and "blocks.0.attention.q_proj".
std::string common_layer(const std::string& a, const std::string& b);

/// The layer of each operation, given the layers of operations that read parameters. Other operations are in the common
/// layer of their nearest neighbors before and after. If that is a list of layers or empty, they are in the numbered
/// layer of the neighbor before, since blocks often end with a sum.
std::vector<std::string> layers_of(const std::vector<std::optional<std::string>>& of_parameters);

}  // namespace tapegrad::detail
