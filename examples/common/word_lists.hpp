/// The word lists that Debian packages install in /usr/share/dict.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "text.hpp"

namespace examples {

/// A list of words, sorted, each once.
struct WordList {
  std::string language;  ///< printable
  std::vector<Text> words;
};

/// The languages whose lists are known by name: "catalan, danish, ...".
std::string known_languages();

/// The file of a language that is known by name or given as the path of a file, which may be missing. Throws
/// std::invalid_argument, naming the option that it comes from, for a language that is neither.
std::filesystem::path word_list_path(const std::string& language, const std::string& option = "--languages");

/// Reads the lists of the languages, each known by name or given as the path of a file with a word a line, in that
/// encoding. Keeps words made of letters alone, in small letters: the capitals that German writes its nouns with, or a
/// list its names, are gone. Throws std::invalid_argument, naming the option that they come from, for a language that
/// is unknown or there twice, and std::runtime_error, naming the packages to install, for lists that are not there.
std::vector<WordList> read_word_lists(const std::vector<std::string>& languages, Encoding encoding = Encoding::utf8,
                                      const std::string& option = "--languages");

/// Takes the words that more than one list has out of all of them, and says how many words these were.
std::size_t remove_shared_words(std::vector<WordList>& lists);

}  // namespace examples
