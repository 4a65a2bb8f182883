/// What the last sweep of a thread reached. For the library's own sources.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../leaf.hpp"

namespace tapegrad::detail {

/// The parameters that a thread's last sweep reached. A parameter keeps the number of the sweep that came by last, so
/// that a report on a model can tell whether its parameters are all of these.
template <class T> struct LastSweep {
  struct Parameter {
    const Leaf<T>* place;  // of the weak pointer, which keeps the address from being given to another
    std::weak_ptr<const Leaf<T>> leaf;
    const char* operation;  // that read it first
  };

  std::uint64_t number = 0;  // 0: none yet; no two sweeps of a program share one
  std::vector<Parameter> parameters;

  static LastSweep& of_this_thread();

  /// Begins another sweep's list of at most `count` parameters, adds to it, and ends it. In training one sweep is like
  /// the next: what stands in the list already is left there.
  void begin(std::size_t count);
  void add(const std::shared_ptr<Leaf<T>>& leaf, const char* operation);
  void end() { parameters.resize(added_); }

 private:
  std::size_t added_ = 0;
};

}  // namespace tapegrad::detail
