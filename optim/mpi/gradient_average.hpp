/// Averages gradients over the ranks.
#pragma once

#include <cstddef>
#include <memory>

#include "../../engine/tape/parameter_handle.hpp"

namespace tapegrad::mpi {

class Group;

/// Options of gradient averaging.
struct AverageOptions {
  /// The weight of this rank's gradients: the number of labels or tokens its loss is averaged over, possibly 0.
  double weight = 1;
  /// The approximate size of the buckets in which gradients are summed. Smaller ones start earlier, larger ones have
  /// less overhead.
  std::size_t bucket_bytes = std::size_t{4} << 20;
};

/// Averages gradients during the backward pass: each bucket of gradients is sent as soon as it is complete, in reverse
/// order of recording.
///
///     tg::mpi::GradientAverage average(world, tg::parameters(model));  // once
///     ...
///     const tg::Tensor loss = tg::cross_entropy(model(mine), my_labels);
///     average.begin(double(my_labels.size()));
///     loss.backward();
///     average.finish();
///
/// In a group of one the gradients stay unchanged; errors are the same as in larger groups.
///
/// The result equals mpi::Group::average_gradients after the pass. The first step sends its buckets after the pass;
/// later steps send them in the order of arrival of rank 0's gradients in the first step. If several passes accumulate
/// a step's gradient, only the last one runs between begin() and finish(). Register your own hooks on gradients before
/// you construct this object.
template <class T> class GradientAverage {
 public:
  /// Registers hooks. Throws std::invalid_argument without parameters, for an undefined or duplicate one, and for
  /// buckets of 0 bytes.
  GradientAverage(const Group& group, const Parameters<T>& parameters,
                  std::size_t bucket_bytes = AverageOptions().bucket_bytes);
  GradientAverage(GradientAverage&&) noexcept;             ///< transfers the hooks
  GradientAverage& operator=(GradientAverage&&) noexcept;  ///< transfers the hooks
  /// Unregisters the hooks.
  ~GradientAverage();

  /// Starts averaging gradients as they arrive, this rank's with the given weight. Other calls of the group are allowed
  /// until finish(). Throws std::logic_error before the finish() of a previous begin(), of this average or another.
  void begin(double weight = 1);

  /// Waits until all gradients are averaged. Throws std::logic_error without a begin(), and std::invalid_argument, on
  /// all ranks and with unchanged gradients, if a weight is negative or not finite, all weights are 0, or the ranks'
  /// parameters or buckets differ in size.
  void finish();

 private:
  friend class Group;
  static void of_whole_sweep(const Parameters<T>& parameters, const AverageOptions& options);

  class State;
  State& state() const;  // throws std::logic_error if moved from
  std::unique_ptr<State> state_;
};

}  // namespace tapegrad::mpi
