// expect: tapegrad: compound assignment would make a parameter a handle on a result
#include <tapegrad/tapegrad.hpp>

int main() {
  tapegrad::Parameter<float> p(tapegrad::Array<float>{1, 2});
  p += 1;
}
