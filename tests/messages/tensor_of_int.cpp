// expect: tapegrad: expected a Tensor of float or double; ids, labels and lengths are a tapegrad::IntArray
#include <tapegrad/tapegrad.hpp>

int main() { const tapegrad::Tensor<int> ids; }
