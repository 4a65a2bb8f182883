/// The optional observer of a tape. For the library's own sources.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../record.hpp"
#include "../tape.hpp"

namespace tapegrad::detail {

template <class T> class Nodes;
template <class T> class Sweep;

/// Sees the nodes on T while they are recorded and swept. It may throw: the operation fails and the tape continues, or
/// the backward pass ends.
template <class T> class Observer {
 public:
  virtual ~Observer() = default;

  /// An operation is about to read a parameter.
  virtual void reading(const char* operation, const Tensor<T>& x) = 0;

  /// An operation has computed y, which may stay unrecorded.
  virtual void computed(const Operation& operation, const Tensor<T>& y, const Inputs<T>& inputs,
                        const Edges& edges) = 0;

  /// A node is about to be appended: an operation, or a parameter, without a rule.
  virtual void recording(std::int32_t node, const Tensor<T>& y, const Inputs<T>& inputs, const Edges& edges,
                         const Rule<T>* rule, const Describe<T>& describe) = 0;

  /// A backward pass starts at a node on T.
  virtual void started(Recording& recording, std::int32_t start) = 0;

  /// The gradient of a node's output is complete; null if it received none. `hooked` if hooks were called.
  virtual void arrived(std::int32_t node, const GradPointer<T>& dy, bool hooked) = 0;

  /// Where a rule adds to each input's gradient; null for the sums of the backward pass.
  virtual std::vector<GradPointer<T>>* contributions(std::size_t inputs) = 0;

  /// A node's rule has run.
  virtual void propagated(std::int32_t node, const Array<T>& dy, Sweep<T>& sweep) = 0;
};

/// The observer selected by the options of a tape, or null. In inspect/.
template <class T> std::unique_ptr<Observer<T>> make_observer(Nodes<T>& nodes, const TapeOptions& options);

}  // namespace tapegrad::detail
