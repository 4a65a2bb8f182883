/// A read-only view of a tape's nodes, for reports and pages. For the library's own sources.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "observers.hpp"

namespace tapegrad::detail {

/// A node of a recording. Valid until the tape records or sweeps again.
template <class T> struct NodeView {
  std::size_t number;  // among the nodes on T
  const Operation& operation;
  std::string name;  // as given, a parameter's path, or ""
  const Shape& shape;
  bool is_parameter;
  std::span<const std::int32_t> inputs;       // the nodes it read; -1 for a constant
  const Array<T>* parameter_gradient;         // accumulated by a parameter; null without any
  const typename Profile<T>::Entry* profile;  // null unless the tape profiles
  const typename KeptValues<T>::Entry* kept;  // null unless it keeps values
  const LayerCall* layer;                     // null outside of all layers, and unless the tape keeps layers
};

/// Calls visit(view) for each node in the order of recording: first nodes on float, then nodes on double.
template <class Visit> void for_each_node(const Recording& recording, Visit visit) {
  const auto walk = [&]<class T>(const Nodes<T>& nodes) {
    const Observers<T>* const observers = observers_of(nodes);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto number = static_cast<std::int32_t>(i);
      const Node<T>& node = nodes[number];
      visit(
          NodeView<T>{.number = i,
                      .operation = node.operation,
                      .name = nodes.name(number),
                      .shape = node.shape,
                      .is_parameter = node.is_parameter,
                      .inputs = {node.inputs.begin(), node.inputs.end()},
                      .parameter_gradient = node.is_parameter ? node.slot->grad.get() : nullptr,
                      .profile = observers && observers->profile() ? &observers->profile()->entries()[i] : nullptr,
                      .kept = observers && observers->kept_values() ? &observers->kept_values()->entries()[i] : nullptr,
                      .layer = observers ? observers->layer(number) : nullptr});
    }
  };
  walk(recording.of<float>());
  walk(recording.of<double>());
}

}  // namespace tapegrad::detail
