// expect: tapegrad: expected a tensor to average, got a bool
#include <tapegrad/tapegrad.hpp>

int main() {
  const tapegrad::IntArray labels{0, 1};
  tapegrad::mean(tapegrad::argmax(tapegrad::tensor({{1, 2}, {3, 4}}), 1) == labels);
}
