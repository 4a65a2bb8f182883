"""Fills the template of inspect/page/browser/ with data, as the library does."""

import html
import json
import pathlib
import re

folder = pathlib.Path(__file__).parents[2] / "inspect" / "page" / "browser"


def assemble(data):
    """The page of data in the format of inspect/page/FORMAT.md, a dictionary."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    scripts = [(folder / name).read_text() for name in (folder / "scripts.txt").read_text().split()]
    parts = {
        "{{title}}": html.escape(data["title"]),
        "/*{{css}}*/": (folder / "page.css").read_text(),
        "/*{{js}}*/": "\n".join(scripts),
        "{{data}}": text,
    }
    # In one pass, since an inserted text may contain a placeholder.
    pattern = "|".join(re.escape(placeholder) for placeholder in parts)
    return re.sub(pattern, lambda match: parts[match[0]], (folder / "page.html").read_text())
