/// What a tape has recorded, as reports and pages walk over it. For the library's own sources.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "../../tape/internal/recording.hpp"

namespace tapegrad::detail {

/// A node of a recording, to be read. Good until the tape records or sweeps again.
template <class T> struct NodeView {
  std::size_t number;  // among the nodes on T
  const Operation& operation;
  std::string name;  // as given, a parameter's path, or ""
  const Shape& shape;
  bool is_parameter;
  std::span<const std::int32_t> inputs;  // the numbers of what it read; -1 for a constant
  const Array<T>* parameter_gradient;    // what a parameter has gathered, in other sweeps too; null without any
  const Profile* profile;                // null unless the tape profiles
  const KeptNode<T>* kept;               // null unless it keeps values
};

/// Calls visit(view) for each node, in the order of recording: first for those on float, then for those on double.
template <class Visit> void for_each_node(const Recordings& recordings, Visit visit) {
  const auto walk = [&]<class T>(const Recording<T>& recording) {
    for (std::size_t i = 0; i < recording.size(); ++i) {
      const Node<T>& node = recording.nodes()[i];
      visit(NodeView<T>{.number = i,
                        .operation = node.operation,
                        .name = recording.name(static_cast<std::int32_t>(i)),
                        .shape = node.shape,
                        .is_parameter = node.is_parameter,
                        .inputs = {node.inputs.begin(), node.inputs.end()},
                        .parameter_gradient = node.is_parameter ? node.leaf->grad.get() : nullptr,
                        .profile = recording.profiles().empty() ? nullptr : &recording.profiles()[i],
                        .kept = recording.kept().empty() ? nullptr : &recording.kept()[i]});
    }
  };
  walk(recordings.of<float>());
  walk(recordings.of<double>());
}

}  // namespace tapegrad::detail
