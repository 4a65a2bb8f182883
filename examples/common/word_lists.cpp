#include "word_lists.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "printable.hpp"

namespace examples {

namespace {

struct Source {
  std::string language;
  std::filesystem::path path;
  std::string package;  // Debian package; empty for the user's own file
};

const std::vector<Source>& known_sources() {
  static const std::filesystem::path folder = "/usr/share/dict";
  static const std::vector<Source> sources{
      {"catalan", folder / "catalan", "wcatalan"},
      {"danish", folder / "danish", "wdanish"},
      {"dutch", folder / "dutch", "wdutch"},
      {"english", folder / "american-english", "wamerican"},
      {"french", folder / "french", "wfrench"},
      {"german", folder / "ngerman", "wngerman"},
      {"italian", folder / "italian", "witalian"},
      {"polish", folder / "polish", "wpolish"},
      {"portuguese", folder / "portuguese", "wportuguese"},
      {"spanish", folder / "spanish", "wspanish"},
  };
  return sources;
}

Source find_source(const std::string& language, const std::string& option) {
  for (const Source& source : known_sources())
    if (source.language == language) return source;
  const std::filesystem::path path = language;
  if (path.has_parent_path() || std::filesystem::exists(path)) return {printable(path.stem().string()), path, ""};
  throw std::invalid_argument(option + ": expected " + known_languages() + " or the path of a word list, got " +
                              in_quotes(language));
}

void require_installed(const std::vector<Source>& sources) {
  std::string missing, packages;
  for (const Source& source : sources) {
    if (source.package.empty() || std::filesystem::exists(source.path)) continue;
    missing += (missing.empty() ? "" : ", ") + source.path.string();
    packages += ' ' + source.package;
  }
  if (!missing.empty()) throw std::runtime_error(missing + ": word list not found; run apt-get install" + packages);
}

}  // namespace

std::string known_languages() {
  std::string names;
  for (const Source& source : known_sources()) names += (names.empty() ? "" : ", ") + source.language;
  return names;
}

std::filesystem::path word_list_path(const std::string& language, const std::string& option) {
  return find_source(language, option).path;
}

std::vector<WordList> read_word_lists(const std::vector<std::string>& languages, Encoding encoding,
                                      const std::string& option) {
  std::vector<Source> sources;
  std::set<std::string> names;
  for (const std::string& language : languages) {
    sources.push_back(find_source(language, option));
    if (!names.insert(sources.back().language).second)
      throw std::invalid_argument(option + ": expected each language once, got " + in_quotes(language) + " twice");
  }
  require_installed(sources);

  std::vector<WordList> lists;
  for (const Source& source : sources) {
    std::vector<Text> words = read_lines(source.path, source.package.empty() ? encoding : Encoding::utf8);
    std::erase_if(words,
                  [](const Text& word) { return word.empty() || !std::all_of(word.begin(), word.end(), is_letter); });
    for (Text& word : words) word = to_lower(std::move(word));
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    lists.push_back({source.language, std::move(words)});
  }
  return lists;
}

std::size_t remove_shared_words(std::vector<WordList>& lists) {
  std::unordered_set<Text> seen, shared;
  for (const WordList& list : lists)
    for (const Text& word : list.words)
      if (!seen.insert(word).second) shared.insert(word);
  for (WordList& list : lists) std::erase_if(list.words, [&](const Text& word) { return shared.contains(word); });
  return shared.size();
}

}  // namespace examples
