#!/usr/bin/env python3
"""Reports mistakes in the comments of public headers: python3 comments.py XML SOURCES HEADERS...

    tg::name, Class::name      not a public name
    name()                     and `name`: not in the headers' code
    name: (B, T)               the shape of a parameter missing from the function
    folder/name.hpp            not a header
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
import interface

SHAPE = re.compile(r"((?:\w+(?:, | and ))*\w+): (?=\(|any shape)")


def faults_of_text(comment: str, code: set[str], public: set[str]) -> list[str]:
    faults = [name for name in re.findall(r"\btg::(\w+(?:::\w+)*)", comment) if name not in public]
    for scope, name in re.findall(r"(?<!:)\b([A-Z]\w+)::(\w+)", comment):
        if scope not in public or not any(known.endswith(f"{scope}::{name}") for known in public):
            faults.append(f"{scope}::{name}")
    mentioned = re.findall(r"(?<![\w.>])(\w+)\(\)", comment) + re.findall(r"`(\w+)`", comment)
    return faults + [name for name in mentioned if name not in code and not name.isdigit()]


def faults_of_parameters(name: interface.Name) -> list[str]:
    if name.kind != "function":
        return []
    sentences = re.findall(SHAPE, " ".join(name.comment.split()))
    words = [word for words in sentences for word in re.split(", | and ", words)]
    return [word for word in words if word not in name.parameters]


def main(xml: pathlib.Path, sources: pathlib.Path, headers: list[str]) -> int:
    names = interface.read(xml)
    public = {name.name.removeprefix("tapegrad::") for name in names}
    texts = {header: (sources / header).read_text(encoding="utf-8") for header in headers}
    code = {word for text in texts.values() for word in re.findall(r"\w+", re.sub("//.*", "", text))}
    faults = []
    for header, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            comment = line.partition("///")[2]
            faults += [f"{header}:{number}: no {fault}" for fault in faults_of_text(comment, code, public)]
            for path in re.findall(r"[\w/]+/\w+\.hpp", comment):
                if not (sources / path).exists() and not (sources / header).parent.joinpath(path).exists():
                    faults.append(f"{header}:{number}: no {path}")
    for name in names:
        place = ":".join(map(str, name.place))
        faults += [f"{place}: {name.name} has no parameter {fault}" for fault in faults_of_parameters(name)]
    print(*faults, f"{len(names)} comments", sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]))
