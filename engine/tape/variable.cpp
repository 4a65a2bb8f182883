#include "variable.hpp"

#include "../array/internal/error.hpp"

namespace tapegrad::detail {

template <class T>
void GradSlot<T>::require_shape(const char* operation, const char* what, const char* name, const Array<T>& x) const {
  require_usage(x.shape() == shape, operation, "expected a ", what, " to keep its shape ", shape, ", given ", name,
                *name == '\0' ? "" : " ", x.shape());
}

template struct GradSlot<float>;
template struct GradSlot<double>;

}  // namespace tapegrad::detail
