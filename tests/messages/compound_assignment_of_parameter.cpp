// expect: tapegrad: compound assignment would turn a parameter into an operation's result
#include <tapegrad/tapegrad.hpp>

int main() {
  tapegrad::Parameter<float> p(tapegrad::Array<float>{1, 2});
  p += 1;
}
