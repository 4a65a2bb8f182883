// expect: tapegrad: recompute owns the function, which it calls again in the backward pass
#include <tapegrad/tapegrad.hpp>

int main() {
  tapegrad::Linear<> layer(2, 3);
  tapegrad::recompute(layer, tapegrad::tensor({{1, 2}}));
}
