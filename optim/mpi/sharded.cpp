#include "sharded.hpp"

#include <algorithm>
#include <numeric>

#include "internal/world.hpp"

namespace tapegrad::mpi::detail {

std::vector<std::size_t> divide(const std::vector<std::size_t>& sizes, std::size_t ranks) {
  std::vector<std::size_t> largest_first(sizes.size()), owners(sizes.size()), loads(ranks, 0);
  std::iota(largest_first.begin(), largest_first.end(), 0);
  std::ranges::stable_sort(largest_first, std::ranges::greater(), [&](std::size_t i) { return sizes[i]; });
  for (const std::size_t i : largest_first) {
    const auto smallest = std::ranges::min_element(loads);
    *smallest += sizes[i];
    owners[i] = static_cast<std::size_t>(smallest - loads.begin());
  }
  return owners;
}

template <class T>
void gather_values(const Parameters<T>& parameters, const std::vector<std::size_t>& owners,
                   const std::vector<bool>& changed) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!changed[i]) continue;
    Array<T>& value = parameters[i]->mutable_value();
    requests.push_back(start_broadcast(value.data(), value.size() * sizeof(T), owners[i]));
  }
  for (Request& request : requests) request.wait("step");
}
template void gather_values(const Parameters<float>&, const std::vector<std::size_t>&, const std::vector<bool>&);
template void gather_values(const Parameters<double>&, const std::vector<std::size_t>&, const std::vector<bool>&);

std::vector<std::byte> to_first(std::vector<std::byte> bytes, std::size_t from) {
  std::size_t size = bytes.size();
  start_copy(&size, sizeof size, from, 0).wait("gather");
  bytes.resize(size);
  start_copy(bytes.data(), size, from, 0).wait("gather");
  return bytes;
}

}  // namespace tapegrad::mpi::detail
