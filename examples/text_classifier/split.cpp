#include "split.hpp"

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace {

/// The examples' indices, grouped by label and shuffled within each group. Evenly spaced samples of this order are
/// stratified.
std::vector<std::size_t> by_label(const std::vector<Example>& examples) {
  const tapegrad::IntArray permutation = tapegrad::random_permutation(examples.size());
  std::vector<std::size_t> order(permutation.begin(), permutation.end());
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return examples[a].label < examples[b].label; });
  return order;
}

}  // namespace

std::vector<std::size_t> deal(const std::vector<Example>& examples, std::size_t parts) {
  const std::vector<std::size_t> order = by_label(examples);
  std::vector<std::size_t> part_of(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) part_of[order[i]] = i % parts;
  return part_of;
}

Data fold(const std::vector<Example>& examples, const std::vector<std::size_t>& part_of, std::size_t part) {
  Data data;
  for (std::size_t i = 0; i < examples.size(); ++i)
    (part_of[i] == part ? data.test : data.train).push_back(examples[i]);
  return data;
}

std::vector<Example> take_share(std::vector<Example>& examples, double share) {
  const std::vector<std::size_t> order = by_label(examples);
  const auto count_taken = [&](std::size_t first) { return std::floor(share * static_cast<double>(first) + 0.5); };
  const double count = count_taken(order.size());
  if (count == 0 || count == static_cast<double>(order.size()))
    throw std::runtime_error("--validation: expected a share that holds out some of the " +
                             std::to_string(order.size()) + " training texts, not all, got one that holds out " +
                             std::to_string(static_cast<std::size_t>(count)));
  std::vector<bool> takes(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) takes[order[i]] = count_taken(i + 1) > count_taken(i);

  std::vector<Example> taken, left;
  for (std::size_t i = 0; i < examples.size(); ++i) (takes[i] ? taken : left).push_back(std::move(examples[i]));
  examples = std::move(left);
  return taken;
}
