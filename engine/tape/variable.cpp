#include "variable.hpp"

#include "../array/internal/error.hpp"

namespace tapegrad::detail {

template <class T>
void GradSlot<T>::throw_resized(const char* operation, const char* what, const char* name, const Array<T>& x) const {
  fail<std::logic_error>(operation, "expected a ", what, " to keep its shape ", shape, ", got ", name,
                         *name == '\0' ? "" : " ", x.shape(), "; change its elements, not its shape");
}

template struct GradSlot<float>;
template struct GradSlot<double>;

}  // namespace tapegrad::detail
