/// Fuzzes saved models and runs of language_model: a loaded one works.
#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "../../examples/language_model/writer.hpp"
#include "../support/temporary_folder.hpp"
#include "checkpoints.hpp"

void fuzz::fuzz_one(std::string_view input) {
  const File file(saved_model(input, "language_model")), run(saved_model(input, SavedRun::entry));
  program_refusal([&] {
    const Writer writer = load(file.path());
    const PackedIds packed = writer.encode("a song, béla");
    examples::Ids ids;
    for (std::size_t i = 0; i < std::min(packed.size(), writer.options.context); ++i) ids.push_back(packed[i]);
    const auto logits = writer.model(tapegrad::int_array(ids, {std::size_t{1}, ids.size()}));
    expect(logits.shape().back() == writer.vocabulary.size(), "logits for other than the vocabulary");
    writer.shown(writer.read_prompt(U""));
  });
  program_refusal([&] { examples::read_saved<SavedRun>(run.path()); });
}

std::vector<std::string> fuzz::seeds() {
  const TemporaryFolder folder;
  std::vector<std::string> inputs;
  for (const std::size_t layers : {0, 1}) {
    const ModelOptions options{
        .layers = layers, .heads = 2, .width = 2, .context = 3, .positions = Positions::learned, .tie = layers == 1};
    const Writer writer{
        layers == 0 ? Source::text : Source::words, examples::Vocabulary({"\n", " ", "a", "é"}), {"a", "aa"}, options};
    save(writer, folder.path("model"));
    inputs.push_back(input_of_saved(folder.read("model"), "language_model"));
  }
  inputs.push_back(nlohmann::json(SavedRun{}).dump() + "\n{}\n");
  return inputs;
}
