#include "group.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "../../engine/array/internal/environment.hpp"
#include "../../engine/array/internal/error.hpp"
#include "internal/world.hpp"

namespace tapegrad::mpi {

// FNV-1a on words of eight bytes. Each step also mixes the upper half into the lower.
std::uint64_t detail::checksum(const void* bytes, std::size_t count, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed ^ count;
  const auto add = [&](const std::byte* at, std::size_t size) {
    std::uint64_t word = 0;
    if (size > 0) std::memcpy(&word, at, size);
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 32;
  };
  const std::byte* at = static_cast<const std::byte*>(bytes);
  for (; count >= 8; at += 8, count -= 8) add(at, 8);
  add(at, count);
  return hash;
}

Group::Group() : rank_(detail::rank()), size_(detail::size()) {
  // Without a Session each rank would be a group of one, and mpirun would wait forever.
  const std::string_view started = tapegrad::detail::environment("OMPI_COMM_WORLD_SIZE");
  tapegrad::detail::require_usage(size_ > 1 || started.empty() || started == "1", "Group",
                                  "expected a Session in each of the ", started,
                                  " ranks started by mpirun, got none; create a tg::mpi::Session in main()");
}

void Group::broadcast_bytes(std::vector<std::byte>& bytes) const {
  std::uint64_t size = bytes.size();
  detail::start_broadcast(&size, sizeof size, 0).wait("broadcast");
  bytes.resize(size);
  detail::start_broadcast(bytes.data(), bytes.size(), 0).wait("broadcast");
}

double Group::sum(double number) const {
  detail::start_sum(&number, 1).wait("sum");
  return number;
}

// All ranks must agree: one rank's number can be the mean of different ones.
bool Group::same_on_all(double number) const { return all(sum(number) == number * static_cast<double>(size_)); }

template <class T> Array<T> Group::sum(Array<T> array) const {
  tapegrad::detail::require(same_on_all(static_cast<double>(array.size())), "sum",
                            "expected arrays of equal size on all ranks, got one of shape ", array.shape(), " on rank ",
                            rank_);
  detail::start_sum(array.data(), array.size()).wait("sum");
  return array;
}
template Array<float> Group::sum(Array<float>) const;
template Array<double> Group::sum(Array<double>) const;

Generator Group::fork_generator(const Generator& generator) const {
  if (rank_ == 0) return generator;
  const auto [key, count] = generator.state();
  return Generator::from_state({random_bits(key, std::numeric_limits<std::uint64_t>::max() - rank_), count});
}

// Broadcasts rank 0's checksums. Each rank finds its first difference; the smallest of all is reported.
void Group::compare_with_first(std::span<const std::string> names, const std::vector<std::uint64_t>& checksums) const {
  if (!same_on_all(static_cast<double>(names.size())))
    tapegrad::detail::fail<std::runtime_error>("check_equal", "expected the same number of fields on all ranks, got ",
                                               names.size(), " on rank ", rank_, " and another number on another rank");
  std::vector<std::uint64_t> rank0_checksums = checksums;
  detail::start_broadcast(rank0_checksums.data(), rank0_checksums.size() * sizeof rank0_checksums[0], 0)
      .wait("check_equal");
  const auto other =
      static_cast<std::size_t>(std::ranges::mismatch(checksums, rank0_checksums).in1 - checksums.begin());

  // The sum of one array per rank, nonzero only at the rank's own index, gathers all first differences.
  Array<double> firsts(Shape{size_}, 0.0);
  firsts(rank_) = static_cast<double>(other);
  firsts = sum(std::move(firsts));
  const auto smallest = std::ranges::min_element(firsts);
  const auto field = static_cast<std::size_t>(*smallest);
  if (field == names.size()) return;
  tapegrad::detail::fail<std::runtime_error>("check_equal", "expected ", names[field],
                                             " to be equal on all ranks, got a different value on rank ",
                                             smallest - firsts.begin(), " than on rank 0");
}

}  // namespace tapegrad::mpi
