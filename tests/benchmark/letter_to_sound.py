#!/usr/bin/env python3
"""Tests Festival's letter-to-sound rules on the test words of examples/pronounce:

    letter_to_sound.py [EVERY]

EVERY 10 takes every tenth of them, because the rules take a fifth of a second per word. They were trained on all words
of the dictionary, including these. Debian's packages: festival, festlex-cmu.
"""

import re
import subprocess
import sys
import tempfile

FOLDER = "/usr/share/festival/dicts/cmu/"


def read_dictionary():
    """The pronunciations of each word, in the file's order. Vowels end in the stress of their syllable."""
    targets = {}
    with open(FOLDER + "cmudict-0.4.out", encoding="latin1") as file:
        for line in file:
            if not line.startswith("("):
                continue
            phonemes = [phoneme + stress if phoneme[0] in "aeiou" else phoneme
                        for syllable, stress in re.findall(r"\(\(([^()]*)\) (\d)\)", line)
                        for phoneme in syllable.split()]
            targets.setdefault(line.split('"')[1], []).append(phonemes)
    return targets


def apply_rules(words):
    with tempfile.NamedTemporaryFile("w", suffix=".scm") as script:
        print(f"(require 'lts) (load \"{FOLDER}cmu_lts_rules.scm\")", file=script)
        for word in words:
            letters = re.sub("[^a-z]", "", word.lower())
            print(f'(format t "=%l\\n" (lts_predict "{letters}" cmu_lts_rules))', file=script, flush=True)
        output = subprocess.run(["festival", "--batch", script.name], check=True, capture_output=True, text=True).stdout
    return [line[1:].strip("()").split() for line in output.splitlines() if line.startswith("=")]


def edit_distance(found, right):
    row = list(range(len(right) + 1))
    for i, a in enumerate(found, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def main(every=1):
    targets = read_dictionary()
    words = list(targets)[9::10][::int(every)]
    found = apply_rules(words)
    assert len(found) == len(words)
    for name, marks in ("with stress", "0"), ("without stress", "012"):  # the rules write unstressed vowels without 0
        shown = lambda phonemes: [phoneme.rstrip(marks) for phoneme in phonemes]
        right = edits = phonemes = 0
        for word, sounds in zip(words, found):
            best, length = min((edit_distance(shown(sounds), shown(target)), len(target)) for target in targets[word])
            right, edits, phonemes = right + (best == 0), edits + best, phonemes + length
        print(f"{len(words):,} test words, {name}: {100 * right / len(words):.1f}% right, "
              f"phoneme error rate {100 * edits / phonemes:.1f}%")


if __name__ == "__main__":
    main(*sys.argv[1:])
