#!/usr/bin/env python3
"""Runs the PyTorch code of docs/coming_from_pytorch.md and compares its results with tapegrad's:

    coming_from_pytorch.py FOLDER

FOLDER has the results.txt of coming_from_pytorch.cmake. Both sides of a row have the same values, unless its remarks
say "Different result", or "Different numbers" if only the shapes are equal.
"""

import contextlib
import io
import math
import os
import pathlib
import re
import sys
import tempfile

import torch
from torch.nn import functional

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/coming_from_pytorch.md"
HEADER = "| PyTorch | tapegrad | what differs, and why |"
PROGRAMS = "## The same program twice"


def scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False):
    """PyTorch 2.0's function, from its documentation."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    return scores.softmax(-1) @ v


def rms_norm(x, normalized_shape, weight, eps):
    """PyTorch 2.4's function."""
    axes = tuple(range(-len(normalized_shape), 0))
    return x * torch.rsqrt((x * x).mean(axes, keepdim=True) + eps) * weight


def read_page():
    """The blocks before each row, the programs, their output, and each row's line, codes and remarks."""
    blocks, programs, rows, shown = [], [], [], ""
    lines = PAGE.read_text().split("\n")
    first_program = lines.index(PROGRAMS)
    for number, line in enumerate(lines, start=1):
        if line in ("```python", "```text"):
            end = lines.index("```", number)
            block = "\n" * number + "\n".join(lines[number:end]) + "\n"
            if line == "```text":
                shown = block.lstrip("\n")
            else:
                (blocks if number < first_program else programs).append(block)
        elif line == HEADER:
            table = lines[number + 1:lines.index("", number)]
            for i, row in enumerate(table, start=number + 2):
                left, _, remarks = re.fullmatch(r"\| (.+) \| (.+) \| (.*)\|", row).groups()
                rows.append((i, re.findall("`([^`]+)`", left), remarks))
    return blocks, programs, shown, rows


def read_results(path):
    """The C++ results of each row, by its line: arrays and texts."""
    results = {}
    for line in path.read_text().splitlines():
        if match := re.fullmatch(r"row (\d+)", line):
            found = results.setdefault(int(match[1]), [])
        elif match := re.fullmatch(r"\((.*?)\)(.*)", line):
            shape = [int(extent) for extent in match[1].split(", ") if extent]
            found.append(torch.tensor([float(x) for x in match[2].split()], dtype=torch.double).reshape(shape))
        else:
            found.append(line.strip('"'))
    return results


def run_row(blocks, codes):
    """The comparable results of a row's codes."""
    names = {}
    for block in blocks:
        exec(block, names)
    found = []
    for code in codes:
        try:
            expression = compile(code, code, "eval")
        except SyntaxError:
            exec(code, names)
            continue
        value = eval(expression, names)
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, (bool, int, float, torch.Size, torch.Tensor)) or type(value).__module__ == "numpy":
            found.append(torch.as_tensor(value).detach().double().clone())
    return found


def equal(left, right):
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    return left.shape == right.shape and torch.allclose(left, right, rtol=1e-5, atol=1e-6, equal_nan=True)


def check(left, right, remarks):
    """True if the two sides of a row are equal, or differ as its remarks say."""
    if len(left) != len(right):
        return False
    if remarks.startswith("Different numbers"):
        return all(a.shape == b.shape for a, b in zip(left, right))
    return all(map(equal, left, right)) != ("Different result" in remarks)


def main(folder):
    for newer in scaled_dot_product_attention, rms_norm:
        if not hasattr(functional, newer.__name__):
            setattr(functional, newer.__name__, newer)
    blocks, programs, shown, rows = read_page()
    results = read_results(pathlib.Path(folder) / "results.txt")
    wrong = compared = 0
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for line, codes, remarks in rows:
            if "Throws" in remarks:
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    left = run_row(blocks, codes)
            except Exception as error:
                left = [f"{type(error).__name__}: {error}"]
            right = results[line]
            compared += len(right)
            if not check(left, right, remarks):
                wrong += 1
                print(f"{PAGE.name}:{line}: {remarks}\n  PyTorch: {left}\n  tapegrad: {right}")
        for program in programs:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(program, PAGE, "exec"), {"__name__": "__main__"})
            if printed.getvalue() != shown:
                wrong += 1
                print(f"A program prints {printed.getvalue()!r}, but the page shows {shown!r}")
        os.chdir("/")
    print(f"{compared} results of {len(rows)} rows compared, {wrong} rows wrong")
    return wrong > 0


sys.exit(main(sys.argv[1]))
