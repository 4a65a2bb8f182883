/// Observer of TapeOptions::keep_values. For the library's own sources.
#pragma once

#include <string>
#include <vector>

#include "../../engine/tape/internal/recording.hpp"

namespace tapegrad::detail {

/// Keeps values and gradients for readers.
template <class T> class KeptValues {
 public:
  explicit KeptValues(const Nodes<T>& nodes) : nodes_(nodes) {}

  /// The stored values of a node.
  struct Entry {
    /// An input without a node. A frozen parameter has its name, an undefined input no value.
    struct Constant {
      Value<T> value;
      std::string name;
    };

    Value<T> value{};                   // of the output; a parameter's when it was first read
    std::vector<Constant> constants{};  // numbered like the inputs; empty entries for nodes
    Arguments<T> arguments{};

    // Of the last backward pass of the tape.
    bool reached = false;
    Value<T> gradient{};                    // after hooks; null if none arrived
    std::vector<Value<T>> contributions{};  // of the rule, for each input; empty if it did not run
  };

  const std::vector<Entry>& entries() const { return entries_; }
  /// The node where the last backward pass started; -1 if there was none or its node has the other type.
  std::int32_t start() const { return start_; }

  void recording(std::int32_t node, const Tensor<T>& y, const Inputs<T>& inputs, const Edges& edges,
                 Arguments<T> arguments);
  void started(std::int32_t start);
  void arrived(std::int32_t node, const GradPointer<T>& dy);
  std::vector<GradPointer<T>>* contributions(std::size_t inputs);
  void propagated(std::int32_t node, Sweep<T>& sweep);

 private:
  const Nodes<T>& nodes_;
  std::vector<Entry> entries_;
  std::vector<GradPointer<T>> contributions_;  // of the running rule
  std::int32_t start_ = -1;
};

}  // namespace tapegrad::detail
