/// Training data for tests of text_classifier.
#pragma once

#include <sstream>
#include <string>

/// Options of a run that takes a fraction of a second.
inline const std::string tiny = " --width 16 --heads 2 --batch-size 32 --steps 200 ";

/// Words of three made-up languages with mostly the same letters, one label and word per line.
inline std::string words_of_three_languages(int lines) {
  const std::string syllables[3][4] = {
      {"ka", "to", "mi", "ru"}, {"sto", "krim", "tak", "urs"}, {"eau", "is", "our", "té"}};
  const char* labels[] = {"isle", "nörd", "val"};
  std::ostringstream text;
  unsigned state = 1;
  const auto next = [&](unsigned n) { return (state = state * 1103515245u + 12345u) / 65536u % n; };
  for (int line = 0; line < lines; ++line) {
    const unsigned label = next(3);
    text << labels[label] << ' ';
    for (unsigned i = 0, count = 2 + next(2); i < count; ++i) text << syllables[label][next(4)];
    text << '\n';
  }
  return text.str();
}

/// "praise" and "blame", recognizable by their words.
inline std::string reviews(int lines) {
  std::ostringstream text;
  for (int i = 0; i < lines; ++i) {
    const bool good = i / 3 % 2 == 0;
    text << (good ? "praise" : "blame") << " the " << (i % 5 < 2 ? "film" : "book") << " is "
         << (i % 7 < 3 ? "really " : "") << (good ? (i % 3 ? "good" : "fine") : (i % 3 ? "dull" : "poor")) << " .\n";
  }
  return text.str();
}
