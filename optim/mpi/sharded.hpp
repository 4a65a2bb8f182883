/// An optimizer whose state is divided among the ranks: the first stage of ZeRO (arXiv:1910.02054).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "../optimizer.hpp"
#include "group.hpp"

namespace tapegrad::mpi {

namespace detail {

/// Which of so many ranks owns each of things of these sizes: the largest first, each to the rank that has least.
std::vector<std::size_t> divide(const std::vector<std::size_t>& sizes, std::size_t ranks);

/// Replaces the values of those parameters that have changed by their owners'.
template <class T>
void gather_values(const Parameters<T>& parameters, const std::vector<std::size_t>& owners,
                   const std::vector<bool>& changed);

/// Bytes that one rank has, on rank 0.
std::vector<std::byte> to_first(std::vector<std::byte> bytes, std::size_t from);

}  // namespace detail

/// Steps an optimizer, SGD, Adam or AdamW, of which each rank keeps the state of its own parameters alone. Every rank
/// steps its own, and then all have all values: the same bits as the whole optimizer's on every rank.
///
///     tg::AdamW optimizer(tg::parameters(model), {.lr = 1e-3});
///     tg::mpi::Sharded sharded(world, optimizer);
///     ...
///     world.average_gradients(tg::parameters(model));
///     sharded.step();
///
/// Parameters are owned as wholes, so that the largest decides how evenly memory is divided.
template <class Optimizer> class Sharded {
 public:
  /// Divides the optimizer's parameters, which are the same on all ranks and all there by now. The optimizer stays
  /// where it is as long as this lives; state that other ranks keep is forgotten.
  Sharded(const Group& group, Optimizer& optimizer) : group_(group), optimizer_(&optimizer) {
    std::vector<std::size_t> sizes;
    for (const auto& parameter : optimizer.parameters()) sizes.push_back(parameter->size());
    owners_ = detail::divide(sizes, group.size());
    keep_own();
  }

  /// Steps as the optimizer does. Gradients must be averages by now; those of others' parameters are forgotten. Throws
  /// as the optimizer's step.
  void step() {
    if (group_.size() == 1) return optimizer_->step();
    const std::vector<bool> changed = keep_own_gradients();
    optimizer_->step();
    detail::gather_values(optimizer_->parameters(), owners_, changed);
  }

  /// Brings all state together in rank 0's optimizer, which can be saved then; keep_own() afterwards. All ranks call
  /// it.
  void gather() {
    const auto parameters = optimizer_->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (owners_[i] == 0) continue;
      auto& state = optimizer_->state(*parameters[i]);
      const auto bytes = detail::to_first(owns(i) ? save_bytes(state) : std::vector<std::byte>(), owners_[i]);
      if (group_.rank() == 0) load(state, std::span<const std::byte>(bytes));
    }
  }

  /// Forgets the state that other ranks keep, after gather() or when the optimizer was loaded.
  void keep_own() {
    const auto parameters = optimizer_->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (!owns(i))
        tapegrad::detail::walk(optimizer_->state(*parameters[i]), []<class F>(const auto&, F& field) {
          if constexpr (requires { tapegrad::detail::Kept<F>::reset(field); }) tapegrad::detail::Kept<F>::reset(field);
        });
  }

  /// How many bytes of arrays this rank keeps.
  std::size_t state_bytes() const {
    std::size_t bytes = 0;
    tapegrad::detail::walk(std::as_const(*optimizer_), [&]<class F>(const auto&, const F& field) {
      if constexpr (requires { field.has_value(), field.value().size(); })
        if (field.has_value()) bytes += field.value().size() * sizeof(field.value()(0));
    });
    return bytes;
  }

  /// The rank that keeps the state of each parameter, in the optimizer's order.
  const std::vector<std::size_t>& owners() const& { return owners_; }
  /// The same, moved from a temporary.
  std::vector<std::size_t> owners() && { return std::move(owners_); }

 private:
  // Which parameters have a gradient on all ranks. No handle is left when the optimizer steps: by those that there are
  // it knows whether its model is.
  std::vector<bool> keep_own_gradients() {
    const auto parameters = optimizer_->parameters();
    std::vector<bool> have;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      have.push_back(parameters[i]->has_grad());
      if (!owns(i)) parameters[i]->zero_grad();
    }
    return have;
  }

  bool owns(std::size_t i) const { return owners_[i] == group_.rank(); }

  Group group_;
  Optimizer* optimizer_;
  std::vector<std::size_t> owners_;
};

}  // namespace tapegrad::mpi
