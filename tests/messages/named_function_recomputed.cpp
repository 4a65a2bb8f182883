// expect: tapegrad: recompute takes over what it will call again in the sweep
#include <tapegrad/tapegrad.hpp>

int main() {
  tapegrad::Linear<> layer(2, 3);
  tapegrad::recompute(layer, tapegrad::tensor({{1, 2}}));
}
