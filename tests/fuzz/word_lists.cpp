/// Fuzzes users' word lists, in both encodings.
#include "../../examples/common/word_lists.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "../../examples/common/vocabulary.hpp"
#include "fuzz.hpp"

using examples::Text;

void fuzz::fuzz_one(std::string_view input) {
  const auto encoding = take_byte(input) & 1 ? examples::Encoding::latin1 : examples::Encoding::utf8;
  const std::string_view first_list = take_until(input, '\x1e');
  const File first(first_list), second(input);
  program_refusal([&] {
    std::vector<examples::WordList> lists = examples::read_word_lists({first.path(), second.path()}, encoding);
    std::vector<Text> all;
    for (const auto& [language, words] : lists) {
      expect_one_line(language);
      expect(std::ranges::is_sorted(words), "words out of order");
      for (const Text& word : words) {
        expect(!word.empty() && std::ranges::all_of(word, examples::is_letter), "a word of other than letters");
        expect(examples::decode(examples::encode(word)) == word, "a word that does not survive its encoding");
        expect(examples::to_lower(word) == word, "a word with capitals");
      }
    }
    examples::remove_shared_words(lists);
    for (const auto& [language, words] : lists) all.insert(all.end(), words.begin(), words.end());
    std::ranges::sort(all);
    expect(std::ranges::adjacent_find(all) == all.end(), "a word that two lists have");
    const auto tokenizer = examples::make_tokenizer(all, examples::Unit::characters, 10, 1);
    for (const Text& word : all)
      expect(std::ranges::count(tokenizer(word), examples::Vocabulary::unknown) == 0, "a character without an id");
  });
}

std::vector<std::string> fuzz::seeds() {
  return {
      "\x01w\xf6rter\r\n\xdc"
      "ber\rstra\xdf"
      "e\x1ewords\nover\nstreet\n",
      "0Ärger\nägypten\nЖук\nΑλφα\x1eword\nжук\n", "0Ÿ\nĀā\nŹź\nĲ\n\n\na b\nit's\n\x1e\xef\xbb\xbfone\ntwo"};
}
