/// Fuzzes saved models of text_classifier: a loaded one works.
#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

#include "../../examples/text_classifier/classifier.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/text_classifier_data.hpp"
#include "checkpoints.hpp"

void fuzz::fuzz_one(std::string_view input) {
  const File file(saved_model(input, "text_classifier"));
  program_refusal([&] {
    Classifier classifier = load_classifier(file.path());
    const examples::Ids ids = classifier.tokenizer(U"the film isle, kato");
    for (const Ranking& ranking : classifier.predict({ids, ids}))
      expect(ranking.size() == classifier.labels.size(), "a ranking without some of the labels");
  });
}

std::vector<std::string> fuzz::seeds() {
  const TemporaryFolder folder;
  const std::string data = folder.write("data", words_of_three_languages(30));
  std::vector<std::string> inputs;
  for (const bool all : {false, true}) {
    Options options;
    options.data = data;
    options.unit = all ? examples::Unit::words : examples::Unit::characters;
    options.model = {
        .width = 2, .heads = 2, .positions = all, .pairs = all, .prior = all, .residual = all, .max_length = 4};
    const Data texts = read_data(options);
    save(make_classifier(texts.train, labels_of(texts.train), options), folder.path("model"));
    inputs.push_back(input_of_saved(folder.read("model"), "text_classifier"));
  }
  return inputs;
}
