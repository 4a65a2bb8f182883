/// Fuzzes GPT-2's tokenizer: its files, and texts of arbitrary bytes.
#include "../../examples/gpt2/tokenizer.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../../examples/common/text.hpp"
#include "../../examples/gpt2/train_tokenizer.hpp"
#include "../../examples/gpt2/utf8_stream.hpp"
#include "fuzz.hpp"
#include "gpt2_folder.hpp"

namespace {

/// The text printed token by token consists of whole characters and equals the text decoded at once.
void check_stream(const Tokenizer& tokenizer, const std::vector<std::int64_t>& ids) {
  Utf8Stream by_tokens, at_once;
  std::string text;
  const auto take = [&](const std::string& part) {
    examples::decode(part);
    text += part;
  };
  for (const std::int64_t id : ids) take(by_tokens.put(tokenizer.bytes(id)));
  take(by_tokens.end());
  std::string whole = at_once.put(tokenizer.decode(ids));
  whole += at_once.end();
  fuzz::expect(text == whole, "a text that depends on how its bytes are cut");
}

void check(const Tokenizer& tokenizer, std::string_view text) {
  for (const Special special : {Special::as_text, Special::as_tokens}) {
    const auto ids = tokenizer.encode(text, special);
    fuzz::expect(tokenizer.decode(ids) == text, "ids that give back another text");
    check_stream(tokenizer, ids);
  }
}

void check_saved(const Tokenizer& tokenizer, std::string_view text) {
  const fuzz::Gpt2Folder folder;
  const std::string refusal = fuzz::program_refusal([&] { tokenizer.save(folder.path()); });
  if (!refusal.empty()) return;
  const Tokenizer read = Tokenizer::read(folder.path());
  fuzz::expect(read.size() == tokenizer.size() && read.end_of_text() == tokenizer.end_of_text() &&
                   read.encode(text, Special::as_tokens) == tokenizer.encode(text, Special::as_tokens),
               "a tokenizer that is another when it was saved");
}

}  // namespace

void fuzz::fuzz_one(std::string_view input) {
  const std::uint8_t kind = take_byte(input);
  const fuzz::Gpt2Folder folder;
  if (kind % 4 == 0) {
    folder.write("tokenizer.json", take_until(input, '\x1e'));
  } else if (kind % 4 == 1) {
    folder.write("vocab.json", take_until(input, '\x1e'));
    folder.write("merges.txt", take_until(input, '\x1e'));
  }
  program_refusal([&] {
    const Tokenizer tokenizer = kind % 4 < 2 ? Tokenizer::read(folder.path()) : train_tokenizer(input, 256 + kind / 4);
    check(tokenizer, input);
    check_saved(tokenizer, input);
  });
}

std::vector<std::string> fuzz::seeds() {
  const std::string text = "the tape's ab  ab\n\n<|endoftext|>12 \xc3\xa9\xff \xf0\x9f\x99\x82 IT'S";
  const std::string vocabulary = "{\x01,\"ab\":256,\"Ġab\":257,\"<|endoftext|>\":258}";
  const std::string byte_level = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true";
  const auto tokenizer_json = [&](const std::string& pre_tokenizer, const std::string& model) {
    return "@{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[{\"id\":258,\"content\":"
           "\"<|endoftext|>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,\"special\":"
           "true}],"
           "\"normalizer\":null,\"pre_tokenizer\":" +
           pre_tokenizer + ",\"post_processor\":" + byte_level + "},\"decoder\":" + byte_level +
           "},\"model\":{\"type\":\"BPE\",\"dropout\":null,\"vocab\":" + vocabulary + "," + model + "}}\x1e" + text;
  };
  std::string llama3;
  for (const char c : kLlama3Expression) llama3 += c == '\\' ? "\\\\" : std::string(1, c);
  return {"A" + vocabulary + "\x1e#version: 0.2\na b\nĠ ab\n\x1e" + text,
          "A{\x01,\"aa\":256}\x1e"
          "a a\n\x1e" +
              std::string(300, 'a'),
          tokenizer_json(byte_level + "}", "\"merges\":[\"a b\",\"Ġ ab\"]"),
          tokenizer_json("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" +
                             llama3 + "\"},\"behavior\":\"Isolated\",\"invert\":false}," + byte_level +
                             ",\"use_regex\":false}]}",
                         "\"ignore_merges\":true,\"merges\":[[\"a\",\"b\"],[\"Ġ\",\"ab\"]]"),
          "\x1a" + text + text,
          "\xfe" + std::string(200, 'a') + text + text};
}
