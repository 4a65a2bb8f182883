/// The mean of the ranks' gradients.
#pragma once

#include <cstddef>
#include <memory>

#include "../../engine/tape/parameter_handle.hpp"

namespace tapegrad::mpi {

class Group;

/// How gradients are averaged.
struct AverageOptions {
  /// What the rank's gradients count: how many labels or tokens its loss is the mean over; 0 where it has none.
  double weight = 1;
  /// Gradients are added up over the ranks in buckets of about so many bytes: smaller ones begin earlier, larger ones
  /// lose less time in beginning.
  std::size_t bucket_bytes = std::size_t{4} << 20;
};

/// Averages gradients while the sweep that computes them goes on: each bucket of them is on its way as soon as it is
/// complete, in the reverse order of recording.
///
///     tg::mpi::GradientAverage average(world, tg::parameters(model));  // once
///     ...
///     const tg::Tensor loss = tg::cross_entropy(model(mine), my_labels);
///     average.begin(double(my_labels.size()));
///     loss.backward();
///     average.finish();
///
/// In a group of one the gradients stay as they are, and what is thrown is thrown as in any other.
///
/// The result is that of mpi::Group::average_gradients after the sweep. The order of the buckets, the same on all
/// ranks, is that in which rank 0's gradients come in the first step, whose buckets go off after its sweep. Of the
/// sweeps that add up to a step's gradient, only the last lies between begin() and finish(), and the hooks that change
/// gradients were registered before.
template <class T> class GradientAverage {
 public:
  /// Registers hooks. Throws std::invalid_argument when there are no parameters, when one is undefined or there twice,
  /// and for buckets of no bytes.
  GradientAverage(const Group& group, const Parameters<T>& parameters,
                  std::size_t bucket_bytes = AverageOptions().bucket_bytes);
  GradientAverage(GradientAverage&&) noexcept;             ///< takes the hooks over
  GradientAverage& operator=(GradientAverage&&) noexcept;  ///< takes the hooks over
  /// Removes its hooks.
  ~GradientAverage();

  /// From here on gradients are averaged as they come, this rank's with that weight. The group's other calls may stand
  /// between this and finish(). Throws std::logic_error without a finish() since the last, of this average or another.
  void begin(double weight = 1);

  /// Waits until all gradients are averages. Throws std::logic_error without a begin(), and std::invalid_argument, on
  /// all ranks and with the gradients as they were, when a weight is below 0 or not finite, when all are 0, or when the
  /// ranks' parameters or buckets are of different sizes.
  void finish();

 private:
  friend class Group;
  static void of_whole_sweep(const Parameters<T>& parameters, const AverageOptions& options);

  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tapegrad::mpi
