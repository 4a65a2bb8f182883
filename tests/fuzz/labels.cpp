/// Fuzzes text_classifier's training data: labels and texts, or word lists, in both encodings.
#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

#include "../../examples/text_classifier/classifier.hpp"
#include "../../examples/text_classifier/split.hpp"
#include "../support/text_classifier_data.hpp"
#include "fuzz.hpp"

namespace {

/// The bits of the first byte: the kind and the number of files, their encoding, and the kind of token.
enum Bits { latin1 = 1, words = 2, pairs = 4, lists = 8, two_files = 16, folds = 32 };

/// Performs all of text_classifier's work on texts before training.
void prepare(const Options& options) {
  Data data = read_data(options);
  const std::vector<std::string> labels = labels_of(data.train);
  if (options.folds > 0) {
    const std::vector<std::size_t> parts = deal(data.train, options.folds);
    data = fold(data.train, parts, 0);
  }
  const Classifier classifier = make_classifier(data.train, labels, options);
  for (const auto* texts : {&data.train, &data.test})
    for (const examples::Ids& ids : classifier.encode(*texts).ids)
      for (const std::int64_t id : ids)
        fuzz::expect(id >= 0 && id < static_cast<std::int64_t>(classifier.tokenizer.vocabulary.size()),
                     "an id that the vocabulary lacks");
}

}  // namespace

void fuzz::fuzz_one(std::string_view input) {
  const std::uint8_t bits = take_byte(input);
  const std::string_view first_text = take_until(input, '\x1e');
  const File first(first_text), second(input);
  Options options;
  options.encoding = bits & latin1 ? examples::Encoding::latin1 : examples::Encoding::utf8;
  options.unit = bits & words ? examples::Unit::words : examples::Unit::characters;
  options.model = {.width = 2, .heads = 1, .min_count = 1, .pairs = (bits & pairs) != 0, .max_length = 16};
  options.words = 10;
  if (bits & lists) {
    options.languages = {first.path(), second.path()};
  } else if (bits & two_files) {
    options.train = first.path();
    options.test = second.path();
  } else {
    options.data = first.path();
    options.folds = bits & folds ? 3 : 0;
  }
  program_refusal([&] { prepare(options); });
}

std::vector<std::string> fuzz::seeds() {
  const std::string words = words_of_three_languages(20), texts = reviews(20);
  std::string list;
  for (char c = 'a'; c <= 'z'; ++c) list += std::string("w") + c + '\n';
  return {'0' + words,
          '2' + texts,
          '6' + texts,
          '0' + texts,
          std::string(1, folds | pairs) + texts,
          '\x12' + texts + '\x1e' + texts,
          '\x11' + words + '\x1e' + words,
          '\x08' + list + '\x1e' + "é" + list,
          "\x09" + list + "\x1e\xfc\n" + list,
          "\x01"
          "a \xe9t\xe9\r\nb c\r\r" +
              words,
          "\xef\xbb\xbf" + words};
}
