/// The group of ranks training one model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "../../engine/array/array.hpp"
#include "../../engine/array/random.hpp"
#include "../../layers/model/checkpoint.hpp"
#include "gradient_average.hpp"

namespace tapegrad::mpi {

namespace detail {

/// A 64-bit checksum, compared by ranks instead of the bytes; changing one byte or the seed changes it.
std::uint64_t checksum(const void* bytes, std::size_t count, std::uint64_t seed = 0);

inline std::uint64_t checksum_of_text(const std::string& text, std::uint64_t seed = 0) {
  return checksum(text.data(), text.size(), seed);
}

/// The checksum of a field's name and its text, or its array with the shape, if any.
template <class Stored> std::uint64_t checksum_of(const std::string& name, const Stored& stored) {
  if constexpr (std::is_same_v<Stored, std::nullopt_t>)
    return checksum_of_text(name);
  else if constexpr (std::is_same_v<Stored, std::string>)
    return checksum_of_text(stored, checksum_of_text(name));
  else
    return checksum(stored.data(), stored.size() * sizeof(*stored.data()),
                    checksum_of_text(to_string(stored.shape()), checksum_of_text(name)));
}

}  // namespace detail

/// All ranks of the program. Without mpirun it is a single rank, and the calls change nothing. All ranks must make all
/// calls except `rank` and `size`, in the same order; otherwise the session's timeout ends them.
class Group {
 public:
  /// The ranks of the session. Throws std::logic_error if mpirun started several and there is no session.
  Group();

  std::size_t rank() const { return rank_; }  ///< this process's number, from 0
  std::size_t size() const { return size_; }  ///< the number of processes

  /// Copies rank 0's model or run, all fields of tapegrad::save(), to all ranks. Throws std::runtime_error if fields or
  /// shapes differ on another rank.
  template <class M> void broadcast(M& model) const;

  /// The sum over the ranks, the same bits on each.
  double sum(double number) const;
  /// The same for each element. Throws std::invalid_argument, on all ranks, if the arrays differ in size.
  template <class T> Array<T> sum(Array<T> array) const;
  bool any(bool holds) const { return sum(holds ? 1 : 0) > 0; }  ///< true if it holds on any rank
  bool all(bool holds) const { return !any(!holds); }            ///< true if it holds on every rank

  /// Replaces each gradient by the mean over the ranks, weighted by `options.weight`, the number of labels or tokens of
  /// each rank's loss: ranks with parts of a batch get the gradient of the whole batch. A missing gradient counts as
  /// zero, unless it is missing on all ranks. GradientAverage does the same during the backward pass. Throws like it.
  template <class T> void average_gradients(const Parameters<T>& parameters, const AverageOptions& options = {}) const {
    GradientAverage<T>::of_whole_sweep(parameters, options);
  }

  /// Throws std::runtime_error, on all ranks, naming the first field of the model or run with a different name, shape
  /// or bits. Compares checksums; cheap enough for every few steps.
  template <class M> void check_equal(const M& model) const;

  /// An independent generator for each rank, derived from one equal on all; rank 0 continues the given one. For
  /// dropout, not for initialization.
  Generator fork_generator(const Generator& generator) const;

 private:
  bool same_on_all(double number) const;
  void broadcast_bytes(std::vector<std::byte>& bytes) const;
  void compare_with_first(std::span<const std::string> names, const std::vector<std::uint64_t>& checksums) const;

  std::size_t rank_, size_;
};

template <class M> void Group::broadcast(M& model) const {
  if (size_ == 1) return;
  std::vector<std::byte> bytes;
  if (rank_ == 0) bytes = save_bytes(model);
  broadcast_bytes(bytes);
  if (rank_ != 0) load(model, std::span<const std::byte>(bytes));
}

template <class M> void Group::check_equal(const M& model) const {
  if (size_ == 1) return;
  std::vector<std::string> names;
  std::vector<std::uint64_t> checksums;
  tapegrad::detail::for_each_stored(model, [&](const tapegrad::detail::Path& path, const auto& stored) {
    names.push_back(path.text());
    checksums.push_back(detail::checksum_of(names.back(), stored));
  });
  compare_with_first(names, checksums);
}

}  // namespace tapegrad::mpi
