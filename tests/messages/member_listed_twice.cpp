// expect: tapegrad: expected each member once in TAPEGRAD_FIELDS, got one twice
#include <tapegrad/tapegrad.hpp>

struct Model {
  tapegrad::Linear<> first{2, 3}, second{3, 2};
  TAPEGRAD_FIELDS(first, second, first)
};
