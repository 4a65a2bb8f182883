#!/usr/bin/env python3
"""Compares the public names with names.txt: python3 names.py XML [--update]

Prints new and missing names, one per line; --update rewrites the list. XML is the output folder of the target
`api`.
"""

import pathlib
import sys

sys.dont_write_bytecode = True
import interface

LIST = pathlib.Path(__file__).with_name("names.txt")


def main(xml: pathlib.Path, update: bool) -> int:
    names = sorted({name.entry for name in interface.read(xml)})
    if update:
        LIST.write_text("".join(name + "\n" for name in names), encoding="utf-8")
    listed = LIST.read_text(encoding="utf-8").splitlines()
    changes = [f"vanished: {name}" for name in listed if name not in names]
    changes += [f"appeared: {name}" for name in names if name not in listed]
    print(*changes, f"{len(names)} public names, {len(listed)} of them listed", sep="\n")
    if changes:
        print("Where that is meant, build the target api, and then:", sys.executable, *sys.argv, "--update")
    return bool(changes)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), "--update" in sys.argv[2:]))
