/// Must not compile: CMakeLists.txt beside expects the words of the error.
#include <tapegrad/tapegrad.hpp>

int main() {
  tapegrad::Parameter<float> p(tapegrad::Array<float>{1, 2});
  p += 1;
}
