/// Attention maps of a language model.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

/// Joins the maps of all layers, their heads in order. weights: (1, heads, T, T) per layer; shown: the T tokens.
tapegrad::AttentionMap<float> joined(const std::vector<tapegrad::Tensor<float>>& weights,
                                     const std::vector<std::string>& shown);
