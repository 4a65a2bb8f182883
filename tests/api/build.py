#!/usr/bin/env python3
"""Builds the API reference from the public headers: python3 build.py DOXYGEN SOURCES OUT HEADERS...

OUT/html/index.html lists every name with a one-line summary and a link to its full comment; OUT/xml has the same for
the tests. Any warning of Doxygen, e.g. about a public name without a comment, is an error.
"""

import html
import itertools
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import headers
import interface

FOLDER = pathlib.Path(__file__).parent
DOXYGEN = sys.argv[1]


def run_doxygen(sources: pathlib.Path, out: pathlib.Path, settings: dict[str, str]) -> None:
    """Runs Doxygen. Its warnings name the sources instead of the copies; the line numbers are the same."""
    text = (FOLDER / "Doxyfile").read_text(encoding="utf-8")
    text += "".join(f'{name} = "{value}"\n' for name, value in settings.items())
    done = subprocess.run([DOXYGEN, "-"], input=text, cwd=out / "headers", text=True, stderr=subprocess.PIPE)
    if done.stderr.strip() or done.returncode != 0:
        sys.exit(done.stderr.replace(str(out / "headers"), str(sources)))


def version() -> tuple[int, ...]:
    text = subprocess.run([DOXYGEN, "--version"], text=True, capture_output=True, check=True).stdout
    return tuple(map(int, re.match(r"(\d+)\.(\d+)\.(\d+)", text).groups()))


def layout() -> str:
    """Doxygen's layout, but a group's page begins with the headers' descriptions."""
    text = subprocess.run([DOXYGEN, "-l", "-"], text=True, capture_output=True, check=True).stdout
    text = text.replace('type="modules" visible="yes" title=""', 'type="modules" visible="yes" title="Groups"')
    before, group = text.split("<group>")
    group = group.replace('<detaileddescription title=""/>', "", 1)
    group = group.replace('<briefdescription visible="yes"/>', '<detaileddescription title="About"/>', 1)
    return before + "<group>" + group


def first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)(?<!et al\.)\s+(?=[A-Z]|\w+: )", text, maxsplit=1)[0]


def linked(name: interface.Name, text: str) -> str:
    return f'<a href="{html.escape(name.url)}"><code>{html.escape(text)}</code></a>'


def row_of(name: str, overloads: list[interface.Name]) -> str:
    """One row for all overloads of a name. It shows the first overload with its own comment."""
    first = next((overload for overload in overloads if not overload.brief.startswith("The same")), overloads[0])
    return f"<tr><td>{linked(first, name)}</td><td>{html.escape(first_sentence(first.brief))}</td></tr>\n"


def overview(names: list[interface.Name]) -> str:
    """The page of all names at namespace level, by group and alphabet."""
    page = ""
    for group, (title, about, _) in headers.GROUPS.items():
        outside = [name for name in names if name.group == group and not name.member_of]
        outside.sort(key=lambda name: (not name.short[0].isalpha(), name.short.lower(), name.short, name.place))
        rows = "".join(row_of(short, list(of)) for short, of in itertools.groupby(outside, lambda name: name.short))
        page += f'<h2 id="{group}"><a href="group__{group}.html">{title}</a></h2>\n<p>{about}</p>\n'
        page += f'<table class="names">\n{rows}</table>\n'
    jumps = " · ".join(f'<a href="#{group}">{title}</a>' for group, (title, _, _) in headers.GROUPS.items())
    return f"/** @mainpage API\n@htmlonly\n<p>{jumps}</p>\n{page}@endhtmlonly\n*/\n"


def broken_links(folder: pathlib.Path) -> list[str]:
    page = (folder / "index.html").read_text(encoding="utf-8")
    broken = []
    for link in re.findall(r'<a href="([^"#:]+\.html)#?([^"]*)"><code>', page):
        file = folder / link[0]
        if not file.exists() or f'id="{link[1]}"' not in (file.read_text(encoding="utf-8") + 'id=""'):
            broken.append("#".join(link))
    return broken


def main(sources: pathlib.Path, out: pathlib.Path, public: list[pathlib.Path]) -> None:
    shutil.rmtree(out, ignore_errors=True)
    for header in public:
        copy = out / "headers" / header
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = headers.for_doxygen(header, (sources / header).read_text(encoding="utf-8"))
        copy.write_text(text, encoding="utf-8")
    (out / "headers/groups.dox").write_text(headers.definitions(), encoding="utf-8")
    run_doxygen(sources, out, {"OUTPUT_DIRECTORY": str(out), "GENERATE_XML": "YES", "GENERATE_HTML": "NO"})
    (out / "headers/overview.dox").write_text(overview(interface.read(out / "xml")), encoding="utf-8")
    (out / "layout.xml").write_text(layout(), encoding="utf-8")
    look = {"LAYOUT_FILE": str(out / "layout.xml"), "HTML_EXTRA_STYLESHEET": str(FOLDER / "style.css")}
    if version() >= (1, 9, 5):
        look["HTML_COLORSTYLE"] = "LIGHT"  # Doxygen's dark mode would override the one in style.css
    run_doxygen(sources, out, {"OUTPUT_DIRECTORY": str(out), **look})
    if broken := broken_links(out / "html"):
        sys.exit("Broken links: " + ", ".join(broken))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve(), list(map(pathlib.Path, sys.argv[4:])))
