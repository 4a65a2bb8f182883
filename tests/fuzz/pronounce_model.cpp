/// Fuzzes saved models and runs of pronounce: a loaded one works.
#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

#include "../../examples/pronounce/search.hpp"
#include "../support/temporary_folder.hpp"
#include "checkpoints.hpp"

void fuzz::fuzz_one(std::string_view input) {
  const File file(saved_model(input, "pronounce")), run(saved_model(input, pronounce::SavedRun::entry));
  program_refusal([&] {
    const pronounce::Pronouncer pronouncer = pronounce::load(file.path());
    const examples::Ids found =
        pronounce::find_targets(pronouncer, {pronouncer.read_source("--pronounce", "ab")}, 2).front();
    expect(found.size() < pronouncer.target_length, "a target longer than the model's positions");
    pronouncer.target_text(found);
  });
  program_refusal([&] { examples::read_saved<pronounce::SavedRun>(run.path()); });
}

std::vector<std::string> fuzz::seeds() {
  const TemporaryFolder folder;
  std::vector<std::string> inputs;
  for (const std::size_t layers : {1, 2}) {
    pronounce::PronounceOptions options;
    options.model = {.layers = layers, .heads = 1, .width = 2};
    const pronounce::Pairs pairs{"", {{{"a", "b"}, {"x1"}}, {{"b"}, {"y"}}}, {}};
    save(pronounce::make_pronouncer(pairs, options), folder.path("model"));
    inputs.push_back(input_of_saved(folder.read("model"), "pronounce"));
  }
  inputs.push_back(nlohmann::json(pronounce::SavedRun{}).dump() + "\n{}\n");
  return inputs;
}
