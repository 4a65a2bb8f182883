/// The ranks that train one model, and what they tell each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../../engine/array/random.hpp"
#include "../../layers/model/checkpoint.hpp"
#include "checksum.hpp"
#include "gradient_average.hpp"

namespace tapegrad::mpi {

/// All ranks of the program; a single one where mpirun has not started it, for which all of this changes nothing, and
/// refuses what it refuses on several. What is not `rank` and `size` is called by all ranks, in the same order, or else
/// those that call wait for the others until the session's timeout ends them.
class Group {
 public:
  /// The ranks of the session. Throws std::logic_error where mpirun has started several and there is none.
  Group();

  std::size_t rank() const { return rank_; }  ///< this process's number, from 0
  std::size_t size() const { return size_; }  ///< how many there are

  /// Gives all ranks rank 0's model, or run: all that tapegrad::save() keeps of it. Throws std::runtime_error where
  /// another rank's has other fields or shapes.
  template <class M> void broadcast(M& model) const;

  /// The sum over the ranks, the same bits on each.
  double sum(double number) const;
  /// The same of each element. Throws std::invalid_argument, on all ranks, for arrays of different sizes.
  template <class T> Array<T> sum(Array<T> array) const;
  bool any(bool holds) const { return sum(holds ? 1 : 0) > 0; }  ///< whether it holds on some rank
  bool all(bool holds) const { return !any(!holds); }            ///< whether it holds on every rank

  /// Replaces each gradient by the mean over the ranks, weighted by `options.weight`: what each rank's loss was
  /// averaged over, its labels or tokens. Then N ranks with parts of a batch have the gradient of the whole batch. A
  /// parameter that some rank's loss has not reached counts as zero there; one that none has reached stays without a
  /// gradient. To have this done while the sweep goes on, use a GradientAverage. Throws as that does.
  template <class T> void average_gradients(const Parameters<T>& parameters, const AverageOptions& options = {}) const {
    GradientAverage<T>::of_whole_sweep(parameters, options);
  }

  /// Throws std::runtime_error, on all ranks, when a field of the model, or run, has not the same name, shape and bits
  /// on all, naming the first such field. It compares checksums; worth a call every so many steps.
  template <class M> void check_equal(const M& model) const;

  /// The rank's own generator from one that is equal on all: draws from it are independent, rank 0 goes on with the
  /// given one's. Dropout wants this, initialisation does not.
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
