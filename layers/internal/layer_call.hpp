/// Applications of layers, for observers of a tape. For the library's own sources.
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace tapegrad::detail {

/// One application of a layer. A LayerScope keeps it open.
struct LayerCall : std::enable_shared_from_this<LayerCall> {
  std::string path;                        // such as "blocks.0.attention"
  std::shared_ptr<const LayerCall> outer;  // null outside of all layers

  LayerCall(std::string of_layer, std::shared_ptr<const LayerCall> within)
      : path(std::move(of_layer)), outer(std::move(within)) {}
};

/// The innermost open one of this thread, or null.
inline constinit thread_local const LayerCall* open_layer = nullptr;

/// The same, kept alive.
inline std::shared_ptr<const LayerCall> shared_open_layer() {
  return open_layer ? open_layer->shared_from_this() : nullptr;
}

/// Makes this layer the innermost open one, or none if null, until the end of the scope.
struct ReopenedLayer {
  explicit ReopenedLayer(const LayerCall* layer) : before(std::exchange(open_layer, layer)) {}
  ReopenedLayer(const ReopenedLayer&) = delete;
  ReopenedLayer& operator=(const ReopenedLayer&) = delete;
  ~ReopenedLayer() { open_layer = before; }

  const LayerCall* const before;
};

}  // namespace tapegrad::detail
