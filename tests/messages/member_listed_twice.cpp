// expect: tapegrad: a member is listed twice in TAPEGRAD_FIELDS
#include <tapegrad/tapegrad.hpp>

struct Model {
  tapegrad::Linear<> first{2, 3}, second{3, 2};
  TAPEGRAD_FIELDS(first, second, first)
};
