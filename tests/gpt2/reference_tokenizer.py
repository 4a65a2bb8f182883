#!/usr/bin/env python3
"""Compares the tokenizer of examples/gpt2 with a direct implementation of the definitions: regular expressions by the
module regex (python3-regex), byte-pair encoding and its training step by step.

    tests/gpt2/reference_tokenizer.py build/release/tests/gpt2_tokens [--vocabulary FOLDER] [--text FILE]...

FOLDER has vocab.json and merges.txt; the default is the vocabulary next to this script. GPT-2's own vocabulary is not
part of the project. To test with it, pass its folder here or in the environment variable TAPEGRAD_GPT2.
"""
import argparse
import bisect
import codecs
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

import regex

HERE = pathlib.Path(__file__).resolve().parent
END = "<|endoftext|>"
# From tokenizer.json, but the module's \s matches U+001C to U+001F besides Unicode's White_Space.
EXPRESSIONS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
              r"|\s*[\r\n]+|\s+(?!\S)|\s+",
}
EXPRESSIONS = {name: regex.compile(text.replace(r"\s", r"\p{White_Space}").replace(r"\S", r"\P{White_Space}"))
               for name, text in EXPRESSIONS.items()}


# ---- definitions -----------------------------------------------------------------------------------------------------

def characters_of_bytes():
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte) for byte in seen} | {byte: chr(256 + i) for i, byte in enumerate(others)}


CHARACTERS = characters_of_bytes()


def cut(text, expression="gpt2"):
    """Cuts a text of arbitrary bytes into pieces, as bytes. Invalid UTF-8 becomes lone surrogates, neither letter,
    number nor space. An incomplete character gives one surrogate."""
    lost = []

    def lose(error):
        lost.append(error.object[error.start:error.end])
        return "\ud800", error.end

    codecs.register_error("lose", lose)
    pieces = EXPRESSIONS[expression].findall(text.decode("utf-8", "lose"))
    found = iter(lost)
    return [b"".join(next(found) if c == "\ud800" else c.encode() for c in piece) for piece in pieces]


def merge(tokens, pair):
    merged, i = [], 0
    while i < len(tokens):
        both = tuple(tokens[i:i + 2]) == pair
        merged.append("".join(pair) if both else tokens[i])
        i += 2 if both else 1
    return merged


class Tokenizer:
    def __init__(self, folder):
        self.ids = json.loads((folder / "vocab.json").read_text("utf-8"))
        lines = (folder / "merges.txt").read_text("utf-8").split("\n")
        self.ranks = {tuple(line.split(" ")): rank for rank, line in enumerate(lines[1:-1])}
        self.known = {}

    def encode_piece(self, piece):
        if piece not in self.known:
            tokens = [CHARACTERS[byte] for byte in piece]
            while pairs := [pair for pair in zip(tokens, tokens[1:]) if pair in self.ranks]:
                tokens = merge(tokens, min(pairs, key=self.ranks.get))
            self.known[piece] = [self.ids[token] for token in tokens]
        return self.known[piece]

    def encode(self, text, special):
        ids = []
        for i, part in enumerate(text.split(END.encode()) if special else [text]):
            ids += [self.ids[END]] * (i > 0)
            for piece in cut(part):
                ids += self.encode_piece(piece)
        return ids


def train(text, size):
    """Returns the vocabulary and the merges."""
    ids = {character: i for i, character in enumerate(sorted(CHARACTERS.values()))}
    counts = collections.Counter(piece for part in text.split(END.encode()) for piece in cut(part))
    words = [([CHARACTERS[byte] for byte in piece], count) for piece, count in counts.items()]
    merges = []
    while len(ids) + 1 < size:
        pairs = collections.Counter()
        for tokens, count in words:
            for pair in zip(tokens, tokens[1:]):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], ids[pair[0]], ids[pair[1]]))
        merges.append(best)
        ids.setdefault("".join(best), len(ids))
        words = [(merge(tokens, best), count) for tokens, count in words]
    return ids | {END: len(ids)}, merges


# ---- texts -----------------------------------------------------------------------------------------------------------

# Omits code points unassigned in some versions of Unicode: ICU's and the module's may differ.
CODE_POINTS = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cs", "Cn") or c & 0xfffe == 0xfffe
               or c >= 0x40000]
SPACES = regex.findall(r"\p{White_Space}", "".join(map(chr, CODE_POINTS)))
PARTS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'ſ", "'LL", "'", " ", "  ", "\n", "\r\n", "\t", "a", "The",
         " the", "don't", "1", "1234567", "½", "Ⅻ", "²", "é", "e\u0301", "ñandú", "Ελλάδα", "Привет", "你好", "한국어",
         "नमस्ते", "สวัสดี", "👩\u200d👩\u200d👧", "🇫🇷", "☺\ufe0f", "_", "...", "<|endoftext|>", "<|endof", "\x00", "\x1c",
         "\x1f", "\x7f", "\u0085", "\u200b", "\u2028", "\u3000", "\ufeff", "\ufffd", "\U000e0001", "\U0010ffff"]


def random_texts(count, draw):
    def code_points():
        ends = [0x80, 0x250, 0x370, 0x980, 0x2100, 0x3100, 0x4f00, 0x1f700, 0x110000]
        ends = [bisect.bisect(CODE_POINTS, end) for end in ends]
        drawn = [CODE_POINTS[draw.randrange(draw.choice(ends))] for _ in range(draw.randrange(200))]
        return "".join(map(chr, drawn)).encode()

    def parts():
        return "".join(draw.choice(PARTS) for _ in range(draw.randrange(60))).encode()

    def spaces():
        characters = [*SPACES, *"aaaa1111....éééé"]
        return "".join(draw.choices(characters, k=100)).encode()

    def few_letters():
        return "".join(draw.choice("ab c") for _ in range(draw.randrange(100))).encode()

    def any_bytes():
        return draw.randbytes(draw.randrange(100))

    def broken():  # UTF-8 with some bytes changed, removed or inserted
        text = bytearray(draw.choice([parts, code_points])())
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(text) + 1)
            text[at:at + draw.randrange(2)] = draw.randbytes(draw.randrange(3))
        return bytes(text)

    kinds = [code_points, parts, spaces, few_letters, any_bytes, broken]
    return [draw.choice(kinds)() for _ in range(count)]


def every_code_point():
    """All code points below U+40000, and every 256th of the planes with only unassigned and private ones."""
    chosen = [chr(c) for c in CODE_POINTS if c < 0x40000 or c % 256 == 0]
    return "\n\n".join(f"a{c}1{c} {c}a" for c in chosen).encode()


# ---- comparisons -----------------------------------------------------------------------------------------------------

def run(program, *arguments, texts):
    """Returns the numbers in each text's line of the output."""
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, str(i)) for i in range(len(texts))]
        for file, text in zip(files, texts):
            file.write_bytes(text)
        lines = subprocess.run([program, *arguments, *files], check=True, capture_output=True, encoding="ascii").stdout
    return [[int(number) for number in line.split()] for line in lines.splitlines()]


def compare(what, texts, given, expected):
    wrong = [i for i in range(len(texts)) if given[i] != expected(texts[i])]
    print(f"{what}: {len(texts)} texts, {sum(map(len, texts))} bytes, {len(wrong)} differ")
    for i in wrong[:3]:
        print(f"  {texts[i][:200]!r}\n    got      {given[i][:50]}\n    expected {expected(texts[i])[:50]}")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--vocabulary", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--text", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--count", type=int, default=1000, help="number of random texts")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    texts = [b"", b"a" * 2000, b" " * 2000, bytes(range(256)), *(byte.to_bytes(1, "big") for byte in range(256))]
    texts += [(HERE / "text.txt").read_bytes(), *(file.read_bytes() for file in options.text)]
    texts += random_texts(options.count, draw)

    good = True
    for expression in EXPRESSIONS:
        to_cut = [*texts, every_code_point()]
        good &= compare(f"pieces of {expression}", to_cut, run(options.program, "cut", expression, texts=to_cut),
                        lambda text: [len(piece) for piece in cut(text, expression)])

    folders = options.vocabulary or [HERE / "vocabulary"]
    if "TAPEGRAD_GPT2" in os.environ:
        folders.append(pathlib.Path(os.environ["TAPEGRAD_GPT2"]))
    else:
        print("GPT-2's own vocabulary: skipped; set TAPEGRAD_GPT2 to its folder to test it")
    for folder in folders:
        reference = Tokenizer(folder)
        for special in ("text", "tokens"):
            given = run(options.program, "encode", special, folder, texts=texts)
            good &= compare(f"{folder}, special tokens as {special}", texts, given,
                            lambda text: reference.encode(text, special == "tokens"))

    trained_on = {"text.txt": (HERE / "text.txt").read_bytes()}
    trained_on |= {f"random {i}": b" ".join(random_texts(20, draw)) * 2 for i in range(3)}
    for name, text in trained_on.items():
        with tempfile.TemporaryDirectory() as folder:
            run(options.program, "train", "384", folder, texts=[text])
            made = Tokenizer(pathlib.Path(folder))
        ids, merges = train(text, 384)
        same = made.ids == ids and list(made.ranks) == merges
        print(f"a vocabulary of 384 from {name}: {'equal' if same else 'different'}")
        good &= same
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
