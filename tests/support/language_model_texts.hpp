/// Training data and options for tests of language_model.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "run_example.hpp"
#include "text.hpp"

inline const std::string narrow = " --width 16 --heads 4 --batch-size 32 --steps 300 --lr 0.01 --eval-every 300 ",
                         one_block = narrow + "--layers 1 ";

/// Made-up names of alternating consonants and vowels.
inline std::vector<std::string> names(std::size_t count) {
  const char *consonants[] = {"k", "t", "ß", "r", "L"}, *vowels[] = {"a", "é", "o", "u"};
  std::vector<std::string> names;
  unsigned state = 1;
  const auto next = [&](unsigned n) { return (state = state * 1103515245u + 12345u) / 65536u % n; };
  while (names.size() < count) {
    std::string& name = names.emplace_back();
    for (unsigned i = 0, syllables = 2 + next(3); i < syllables; ++i) {
      name += consonants[next(5)];
      name += vowels[next(4)];
    }
  }
  return names;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

inline std::string rhyme(std::size_t times) { return repeated("über alle wipfel\nist ruh.\n", times); }
