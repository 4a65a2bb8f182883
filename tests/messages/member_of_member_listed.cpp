// expect: tapegrad: expected plain member names in TAPEGRAD_FIELDS
#include <tapegrad/tapegrad.hpp>

struct Model {
  tapegrad::Linear<> layer{2, 3};
  TAPEGRAD_FIELDS(layer.weight)
};
