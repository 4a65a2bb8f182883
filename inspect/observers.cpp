#include "internal/observers.hpp"

namespace tapegrad::detail {

template <class T> std::unique_ptr<Observer<T>> make_observer(Nodes<T>& nodes, const TapeOptions& options) {
  if (!options.profile && !options.detect_anomaly && !options.keep_values) return nullptr;
  return std::make_unique<Observers<T>>(nodes, options);
}

template std::unique_ptr<Observer<float>> make_observer(Nodes<float>&, const TapeOptions&);
template std::unique_ptr<Observer<double>> make_observer(Nodes<double>&, const TapeOptions&);

}  // namespace tapegrad::detail
