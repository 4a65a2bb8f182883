#include "shift.hpp"

#include <xtensor/xview.hpp>

namespace examples {

Shifted shift(const tapegrad::IntArray& ids) {
  return {xt::view(ids, xt::all(), xt::range(xt::placeholders::_, -1)),
          xt::view(ids, xt::all(), xt::range(1, xt::placeholders::_))};
}

}  // namespace examples
