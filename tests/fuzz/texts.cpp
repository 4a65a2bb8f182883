/// Fuzzes language_model's training data: texts, lists of lines and word lists, in both encodings.
#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

#include "../../examples/common/printable.hpp"
#include "../../examples/gpt/pieces.hpp"
#include "../../examples/language_model/data.hpp"
#include "../../examples/language_model/writer.hpp"
#include "fuzz.hpp"

namespace {

/// Performs all of language_model's work on texts before training.
void prepare(const LanguageModelOptions& options) {
  const Corpus corpus = read_corpus(options, options.source);
  fuzz::expect(fingerprint(corpus) == fingerprint(read_corpus(options, options.source)), "a fingerprint that changes");
  const Writer writer{options.source, make_vocabulary(corpus), {}, options.model};
  std::vector<PackedIds> texts;
  for (const auto* part : {&corpus.train, &corpus.test})
    for (const std::string& text : *part) {
      fuzz::expect(examples::encode(examples::decode(text)) == text, "a text that is not UTF-8");
      texts.push_back(writer.encode(text));
    }
  for (const examples::Ids& piece : cut(texts, options.model.context + 1))
    for (const std::int64_t id : piece)
      fuzz::expect(id >= 0 && id < static_cast<std::int64_t>(writer.vocabulary.size()),
                   "an id that the vocabulary lacks");
}

}  // namespace

void fuzz::fuzz_one(std::string_view input) {
  const std::uint8_t bits = take_byte(input);
  const File file(input);
  LanguageModelOptions options;
  options.run.data = file.path();
  options.run.encoding = bits & 1 ? examples::Encoding::latin1 : examples::Encoding::utf8;
  options.source = bits & 2 ? Source::text : bits & 4 ? Source::lines : Source::words;
  options.model.context = 1 + bits / 8;
  program_refusal([&] { prepare(options); });
  expect_one_line(examples::one_line('.' + std::string(input)));
  expect_one_line('.' + examples::visible(input.substr(0, 200)));
}

std::vector<std::string> fuzz::seeds() {
  std::string lines;
  for (const char* name : {"Åsa", "Björn", "Łukasz", "Zoë", "Ørjan", "Ana", "Anna", "Asa", "Bo", "Zo", "Ωμέγα", "анна"})
    lines += std::string(name) + '\n';
  std::vector<std::string> seeds;
  for (const char* bits : {"\x08", "\x09", "\x0a", "\x0b", "\x2c", "\x2d"}) {
    seeds.push_back(bits + lines);
    seeds.push_back(bits + std::string("\xef\xbb\xbf"
                                       "an old\r\nsong \xe2\x80\xae\rof \xfcml\xe4uts\n\n\x1b[31m and more"));
  }
  return seeds;
}
