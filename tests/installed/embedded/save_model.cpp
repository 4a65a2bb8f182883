// Saves the model for another program to embed.
#include <tapegrad/tapegrad.hpp>

int main(int, char** arguments) {
  tapegrad::manual_seed(1);
  tapegrad::save(tapegrad::Linear<>(3, 2), arguments[1], {{"classes", "yes no"}});
}
