/// Writes a folder for load_saved_test.py: each model of fixtures/gpt2.json in every type, with and without the
/// buffers, tied heads and prefixes of some published files.
///   gpt2_folders FOLDER
#include <filesystem>
#include <string>

#include "checkpoint_folder.hpp"

int main(int, char** arguments) {
  const std::filesystem::path folder = arguments[1];
  for (const std::string model : {"gpt2", "llama", "llama tied", "llama with one key head", "llama with wide heads"})
    for (const std::string dtype : {"F32", "F16", "BF16"}) {
      CheckpointFolder published(model);
      published.store_as(dtype);
      published.write(folder / (model + "," + dtype));
      published.add_buffers();
      if (published.config.value("tie_word_embeddings", true)) published.add_tied_head();
      if (published.is_gpt2()) published.add_prefix();
      published.write(folder / (model + "," + dtype + ", with buffers"));
    }
}
