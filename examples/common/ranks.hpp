/// Data-parallel training under mpirun: each rank takes its rows of every batch. Without mpirun there is one rank, and
/// nothing here has an effect.
#pragma once

#include <tapegrad/mpi.hpp>
#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <vector>

#include "batches.hpp"

namespace examples {

/// True on the rank responsible for printing and writing files.
bool is_first_rank();

/// This rank's part of elements equal on all ranks. The ranks' parts are disjoint and cover all elements.
template <class T> std::span<T> own_part(std::span<T> all) {
  const tapegrad::mpi::Group ranks;
  const std::size_t begin = all.size() * ranks.rank() / ranks.size();
  return all.subspan(begin, all.size() * (ranks.rank() + 1) / ranks.size() - begin);
}

/// During its lifetime the default generator draws different numbers on each rank and for each batch number, as dropout
/// requires. The destructor restores the generator, which is equal on all ranks. With one rank it has no effect.
class OwnDraws {
 public:
  explicit OwnDraws(std::size_t batch);
  ~OwnDraws();
  OwnDraws(const OwnDraws&) = delete;
  OwnDraws& operator=(const OwnDraws&) = delete;

 private:
  std::optional<tapegrad::Generator> common_;
};

/// The loss on a rank's part of a batch; undefined if the part is empty.
struct StepLoss {
  tapegrad::Tensor<float> loss;
  std::size_t labels;  ///< number of labels averaged in the loss
  std::size_t tokens;
};

/// The optimizers of a run, each for other parameters.
using Optimizers = std::vector<tapegrad::Optimizer<float>*>;

/// The collective operations of a training run.
class TrainingRanks {
 public:
  /// optimizers: SGD, AdamW or Muon, equal on all ranks. divide_state: each rank stores only a part of their state.
  TrainingRanks(const Optimizers& optimizers, const tapegrad::Parameters<float>& parameters, bool divide_state);

  bool are_several() const { return group_.size() > 1; }
  bool divides_state() const { return sgd_ || adamw_ || muon_; }
  bool any(bool holds) const { return group_.any(holds); }  ///< true if it holds on some rank

  /// The mean loss and token count over all ranks, and this rank's fraction of the labels.
  struct Mean {
    double loss;
    std::size_t tokens;
    double share;
  };
  Mean mean_of(const StepLoss& part) const;

  /// Accumulates `share` times the loss's gradients. A step's last backward pass also sums the gradients over the
  /// ranks, overlapped with the pass.
  void sweep(const StepLoss& part, double share, bool is_last);

  void step();

  /// Calls `save` on the first rank, with the whole optimizer state collected there.
  void with_whole_state(const std::function<void()>& save);

  /// Prints the size of the optimizer state on this rank and in total, if it is divided.
  void print_state(std::ostream& out);

 private:
  template <class Use> void with_sharded(Use use);

  tapegrad::mpi::Group group_;
  Optimizers optimizers_;
  tapegrad::mpi::GradientAverage<float> average_;
  std::optional<tapegrad::mpi::Sharded<tapegrad::SGD<float>>> sgd_;
  std::optional<tapegrad::mpi::Sharded<tapegrad::AdamW<float>>> adamw_;
  std::optional<tapegrad::mpi::Sharded<tapegrad::Muon<float>>> muon_;
};

}  // namespace examples
