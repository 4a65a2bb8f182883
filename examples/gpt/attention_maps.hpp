/// Looking at what a language model attends to.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

/// The maps of all attentions as one: their heads in turn. weights: each (1, heads, T, T); shown: the T tokens.
tapegrad::AttentionMap<float> joined(const std::vector<tapegrad::Tensor<float>>& weights,
                                     const std::vector<std::string>& shown);
