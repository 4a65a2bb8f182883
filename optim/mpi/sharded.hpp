/// Dividing an optimizer's state among the ranks: the first stage of ZeRO (arXiv:1910.02054).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "../optimizer.hpp"
#include "group.hpp"

namespace tapegrad::mpi {

namespace detail {

/// Assigns items to ranks by size: the largest first, each to the rank with the smallest total.
std::vector<std::size_t> divide(const std::vector<std::size_t>& sizes, std::size_t ranks);

/// Replaces the values of changed parameters by their owners'.
template <class T>
void gather_values(const Parameters<T>& parameters, const std::vector<std::size_t>& owners,
                   const std::vector<bool>& changed);

/// One rank's bytes, on rank 0.
std::vector<std::byte> to_first(std::vector<std::byte> bytes, std::size_t from);

}  // namespace detail

/// Divides the state of an optimizer: each rank keeps the state of its own parameters and updates them, then all ranks
/// exchange values. The results have the same bits as with the whole optimizer on every rank.
///
///     tg::AdamW optimizer(tg::parameters(model), {.lr = 1e-3});
///     tg::mpi::Sharded sharded(world, optimizer);
///     ...
///     world.average_gradients(tg::parameters(model));
///     sharded.step();
///
/// Parameters are not split, so the largest one limits the balance of memory.
template <class Optimizer> class Sharded {
 public:
  /// Divides the optimizer's parameters, which must be equal on all ranks and complete. Keeps a reference to the
  /// optimizer, and drops state owned by other ranks.
  Sharded(const Group& group, Optimizer& optimizer) : group_(group), optimizer_(&optimizer) {
    std::vector<std::size_t> sizes;
    for (const auto& parameter : optimizer.parameters()) sizes.push_back(parameter->size());
    owners_ = detail::divide(sizes, group.size());
    keep_own();
  }

  Sharded(const Sharded&) = default;  ///< A move copies, too, so its source stays valid.
  Sharded& operator=(const Sharded&) = default;

  /// A step of the optimizer. Requires averaged gradients; clears those of other ranks' parameters. Throws like the
  /// optimizer's step.
  void step() {
    if (group_.size() == 1) return optimizer_->step();
    const std::vector<bool> changed = keep_own_gradients();
    optimizer_->step();
    detail::gather_values(optimizer_->parameters(), owners_, changed);
  }

  /// Collects all state in rank 0's optimizer, to save it; call keep_own() afterwards. Called by all ranks.
  void gather() {
    const auto parameters = optimizer_->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (owners_[i] == 0) continue;
      auto& state = optimizer_->state(*parameters[i]);
      const auto bytes = detail::to_first(owns(i) ? save_bytes(state) : std::vector<std::byte>(), owners_[i]);
      if (group_.rank() == 0) load(state, std::span<const std::byte>(bytes));
    }
  }

  /// Drops state owned by other ranks, after gather() or loading the optimizer.
  void keep_own() {
    const auto parameters = optimizer_->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (!owns(i))
        tapegrad::detail::walk(optimizer_->state(*parameters[i]), []<class F>(const auto&, F& field) {
          if constexpr (requires { tapegrad::detail::FieldStorage<F>::reset(field); })
            tapegrad::detail::FieldStorage<F>::reset(field);
        });
  }

  /// The bytes of this rank's arrays.
  std::size_t state_bytes() const {
    std::size_t bytes = 0;
    tapegrad::detail::walk(std::as_const(*optimizer_), [&]<class F>(const auto&, const F& field) {
      if constexpr (requires { field.has_value(), field.value().size(); })
        if (field.has_value()) bytes += field.value().size() * sizeof(field.value()(0));
    });
    return bytes;
  }

  /// The owning rank of each parameter, in the optimizer's order.
  const std::vector<std::size_t>& owners() const& { return owners_; }
  /// The same, moved from a temporary.
  std::vector<std::size_t> owners() && { return std::move(owners_); }

 private:
  // Clears the gradients of other ranks' parameters. Returns which parameters had one. Releases its handles, since the
  // optimizer's step throws if no other owner is left.
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
