/// The names by which a tape's nodes are found. For the library's own sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "observers.hpp"

namespace tapegrad::detail {

/// Something on a tape that has a name.
struct RecordedName {
  std::string name;
  std::int32_t node;                 ///< a layer's last operation, or the first reader of a constant
  std::ptrdiff_t constant = -1;      ///< the number of a constant among the node's inputs
  const LayerCall* layer = nullptr;  ///< a layer, if this is its path
};

/// Everything with a name among a tape's nodes on T, in the order of recording. Requires a tape with kept values.
template <class T> std::vector<RecordedName> recorded_names(const Recording& recording);

/// The number of nodes on T that Tape::nodes shows: after a backward pass, those recorded before it.
template <class T> std::int32_t shown_nodes(const Recording& recording);

}  // namespace tapegrad::detail
