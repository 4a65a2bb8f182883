/// Stratified splits of the examples.
#pragma once

#include <cstddef>
#include <vector>

#include "data.hpp"

/// Assigns the examples at random to parts of equal size within one, stratified by label. -> each example's part, 0 to
/// `parts` - 1
std::vector<std::size_t> deal(const std::vector<Example>& examples, std::size_t parts);

/// The data of a fold: part `part` is the test data, the others are training data.
Data fold(const std::vector<Example>& examples, const std::vector<std::size_t>& part_of, std::size_t part);

/// Removes and returns a random share of the examples, stratified by label. Throws std::runtime_error if this is no
/// example or all of them.
std::vector<Example> take_share(std::vector<Example>& examples, double share);
