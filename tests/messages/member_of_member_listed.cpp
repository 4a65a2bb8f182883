// expect: tapegrad: expected the names of members alone in TAPEGRAD_FIELDS
#include <tapegrad/tapegrad.hpp>

struct Model {
  tapegrad::Linear<> layer{2, 3};
  TAPEGRAD_FIELDS(layer.weight)
};
