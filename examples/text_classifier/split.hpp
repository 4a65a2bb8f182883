/// Parts of the examples that are kept from learning.
#pragma once

#include <cstddef>
#include <vector>

#include "data.hpp"

/// Deals the examples at random to parts of equal size, give or take one, each of which has its share of every label.
/// -> of each example the part, from 0 to `parts` - 1
std::vector<std::size_t> deal(const std::vector<Example>& examples, std::size_t parts);

/// Part `part` is the test, the others train.
Data fold(const std::vector<Example>& examples, const std::vector<std::size_t>& part_of, std::size_t part);

/// Takes a share of the examples out at random, the same of every label as nearly as can be. Throws std::runtime_error
/// when that is no example.
std::vector<Example> take_share(std::vector<Example>& examples, double share);
