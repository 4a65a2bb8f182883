"""Fills the template of layers/page/ with data, as the library does."""

import html
import json
import pathlib

folder = pathlib.Path(__file__).parents[2] / "layers" / "page"


def assemble(data):
    """The page of data in the format of layers/page/FORMAT.md, a dictionary."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    scripts = [(folder / name).read_text() for name in (folder / "scripts.txt").read_text().split()]
    page = (folder / "page.html").read_text()
    page = page.replace("{{title}}", html.escape(data["title"]))
    page = page.replace("/*{{css}}*/", (folder / "page.css").read_text())
    page = page.replace("/*{{js}}*/", "\n".join(scripts))
    return page.replace("{{data}}", text)
