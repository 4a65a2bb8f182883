// expect: tapegrad: expected a Tensor of float or double
#include <tapegrad/tapegrad.hpp>

int main() { const tapegrad::Linear<int> layer(2, 3); }
