/// The ranks that mpirun has started train one model: each takes its rows of every batch. Alone, a program is the first
/// and only rank, and all of this changes nothing.
#pragma once

#include <tapegrad/mpi.hpp>
#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>

#include "batches.hpp"

namespace examples {

/// Whether this rank is the one that prints and writes files.
bool is_first_rank();

/// This rank's part of things that are the same on all ranks: the parts overlap nowhere, and are all.
template <class T> std::span<T> own_part(std::span<T> all) {
  const tapegrad::mpi::Group ranks;
  const std::size_t begin = all.size() * ranks.rank() / ranks.size();
  return all.subspan(begin, all.size() * (ranks.rank() + 1) / ranks.size() - begin);
}

/// While it lives, what is drawn from the default generator is this rank's own, as dropout is to draw, and another for
/// every number of a batch; after it, the generator is again where it was, the same on all ranks. Alone, what is drawn
/// is drawn from the default generator as ever.
class OwnDraws {
 public:
  explicit OwnDraws(std::size_t batch);
  ~OwnDraws();
  OwnDraws(const OwnDraws&) = delete;
  OwnDraws& operator=(const OwnDraws&) = delete;

 private:
  std::optional<tapegrad::Generator> common_;
};

/// The loss on a rank's part of a batch. A rank that has no part has none.
struct StepLoss {
  tapegrad::Tensor<float> loss;
  std::size_t labels;  ///< what the loss is the mean over
  std::size_t tokens;
};

/// What the ranks do together in a training.
class TrainingRanks {
 public:
  /// With an optimizer, SGD or AdamW, that is the same on all ranks by now. `divide_state`: each rank keeps a part of
  /// its state.
  TrainingRanks(tapegrad::Optimizer<float>& optimizer, const tapegrad::Parameters<float>& parameters,
                bool divide_state);

  bool are_several() const { return group_.size() > 1; }
  bool divides_state() const { return sgd_ || adamw_; }
  bool any(bool holds) const { return group_.any(holds); }  ///< whether it holds on some rank

  /// What the losses on all parts come to, and this rank's share of it.
  struct Mean {
    double loss;
    std::size_t tokens;
    double share;
  };
  Mean mean_of(const StepLoss& part) const;

  /// Adds `share` of the loss's gradients to the parameters'. The last of a step's sweeps makes them sums over the
  /// ranks, while it goes on.
  void sweep(const StepLoss& part, double share, bool is_last);

  void step();

  /// Calls it on the first rank, with the state of all ranks.
  void with_whole_state(const std::function<void()>& save);

  /// How much of the optimizer's state each rank keeps, where it is divided.
  void print_state(std::ostream& out);

 private:
  template <class Use> void use_divided(Use use);

  tapegrad::mpi::Group group_;
  tapegrad::Optimizer<float>& optimizer_;
  tapegrad::mpi::GradientAverage<float> average_;
  std::optional<tapegrad::mpi::Sharded<tapegrad::SGD<float>>> sgd_;
  std::optional<tapegrad::mpi::Sharded<tapegrad::AdamW<float>>> adamw_;
};

}  // namespace examples
