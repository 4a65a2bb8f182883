"""Reads a page's data and displayed numbers, independently of the page's scripts."""

import base64
import json
import pathlib
import re

import numpy as np


def data_of(file):
    """The data of a page, as a dictionary."""
    text = pathlib.Path(file).read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def decode(array):
    return np.frombuffer(base64.b64decode(array["data"]), dtype="<f4").reshape(array["shape"])


def place_of(words):
    """Parses "name[0, 2] = 0.25" to (position, number); a mean gives (None, None)."""
    match = re.search(r"(?:\[([\d, ]*)\])? = (\S+)$", words)
    if not match:
        return None, None
    place = tuple(int(i) for i in match[1].split(",")) if match[1] else ()
    return place, float(match[2].replace("∞", "inf"))
