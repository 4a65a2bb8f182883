/// Word lists installed by Debian packages in /usr/share/dict.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "text.hpp"

namespace examples {

/// A language's words, sorted, without duplicates.
struct WordList {
  std::string language;  ///< printable
  std::vector<Text> words;
};

/// The languages with known lists: "catalan, danish, ...".
std::string known_languages();

/// The word list of a known language, or of a file given by its path; the list may be missing. Throws
/// std::invalid_argument, naming the option, if `language` is neither.
std::filesystem::path word_list_path(const std::string& language, const std::string& option = "--languages");

/// Reads word lists of known languages, or of files with one word per line in that encoding. Keeps only words made of
/// letters, converted to lowercase: otherwise capitals would reveal German nouns and names. Throws
/// std::invalid_argument, naming the option, for an unknown or duplicate language. Throws std::runtime_error, naming
/// the packages to install, for missing lists.
std::vector<WordList> read_word_lists(const std::vector<std::string>& languages, Encoding encoding = Encoding::utf8,
                                      const std::string& option = "--languages");

/// Removes words found in several lists from all lists. Returns their number.
std::size_t remove_shared_words(std::vector<WordList>& lists);

}  // namespace examples
