import math

import torch
import torch.nn.functional as F

from attention import causal
from table import add, draw, drawn_mask, kept


def add_samples():
    def function(operation, f, **bounds):
        add(operation, "a matrix", [draw(2, 3, **bounds)], f)
        add(operation, "a scalar", [draw(**bounds)], f)

    def smooth_function(operation, bound, f):
        function(operation, f, low=-bound, high=bound)
        add(operation, "large", [draw(8, low=-1e4, high=1e4)], f)
        add(operation, "tiny", [draw(4, low=-1e-9, high=1e-9)], f)

    function("exp", torch.exp, low=-3, high=3)
    add("exp", "large", [draw(4, low=20, high=21)], torch.exp)
    add("exp", "tiny", [draw(4, low=-1e-6, high=1e-6)], torch.exp)
    add("exp", "very negative", [draw(4, low=-1e4, high=-1e3)], torch.exp)
    function("log", torch.log, low=0.2, high=5)
    add("log", "large", [draw(4, low=1e29, high=1e30)], torch.log)
    add("log", "tiny", [draw(4, low=1e-30, high=1e-29)], torch.log)
    function("sqrt", torch.sqrt, low=0.2, high=5)
    add("sqrt", "large", [draw(4, low=1e29, high=1e30)], torch.sqrt)
    add("sqrt", "tiny", [draw(4, low=1e-12, high=1e-11)], torch.sqrt)
    function("abs", torch.abs, gap=0.1)
    add("abs", "large", [draw(4, low=-1e30, high=1e30)], torch.abs)
    add("abs", "tiny", [draw(4, low=-1e-9, high=1e-9, gap=1e-9)], torch.abs)
    smooth_function("tanh", 2, torch.tanh)
    smooth_function("sigmoid", 4, torch.sigmoid)
    function("relu", torch.relu, gap=0.1)
    add("relu", "large", [draw(4, low=-1e30, high=1e30)], torch.relu)
    add("relu", "tiny", [draw(4, low=-1e-9, high=1e-9, gap=1e-9)], torch.relu)
    function("clamp", lambda a: a.clamp(-0.5, 0.75), low=-2, high=2)
    add("clamp", "from below", [draw(2, 3)], lambda a: a.clamp(min=-0.25))
    add("clamp", "from above", [draw(2, 3)], lambda a: a.clamp(max=0.25))
    add("clamp", "to bounds that cross", [draw(2, 3)], lambda a: a.clamp(0.5, -0.5))
    add("clamp", "large", [draw(8, low=-1e30, high=1e30)], lambda a: a.clamp(-5e29, 5e29))
    smooth_function("silu", 4, F.silu)
    smooth_function("softplus", 3, F.softplus)
    add("softplus", "beta and threshold", [draw(8, low=-10, high=10)], lambda a: F.softplus(a, 2, 5))
    add("softplus", "a negative beta", [draw(8, low=-4, high=4)], lambda a: F.softplus(a, beta=-0.5))
    smooth_function("gelu", 3, F.gelu)
    add("gelu", "by tanh", [draw(2, 3, low=-3, high=3)], lambda a: F.gelu(a, approximate="tanh"))
    add("gelu", "by tanh, a scalar", [draw(low=-3, high=3)], lambda a: F.gelu(a, approximate="tanh"))
    add("gelu", "by tanh, tiny", [draw(4, low=-1e-9, high=1e-9)], lambda a: F.gelu(a, approximate="tanh"))
    add("gelu", "by tanh, large", [draw(8, low=-1e4, high=1e4)], lambda a: F.gelu(a, approximate="tanh"))

    fill = torch.masked_fill
    row = torch.tensor([True, False, True])
    add("masked_fill", "a mask of one row", [draw(2, 3)], lambda a: fill(a, row, 0.5))
    add("masked_fill", "a mask of one column", [draw(2, 3)], lambda a: fill(a, drawn_mask((2, 1), 8), 0.5))
    add("masked_fill", "a causal mask of four axes", [draw(2, 2, 3, 3)], lambda a: fill(a, causal(3, 3), 2))
    add("masked_fill", "a scalar, filled", [draw()], lambda a: fill(a, drawn_mask((), 7), 1))
    outer = torch.tensor([True, False, False, True])
    add("masked_fill", "-inf before a softmax", [draw(2, 4)], lambda a: fill(a, outer, -math.inf).softmax(-1))

    add("masked_fill", "a tensor's value in rows", [draw(2, 3), draw()], lambda a, b: fill(a, row, b))
    add("masked_fill", "a tensor's value in a scalar", [draw(), draw()], lambda a, b: fill(a, drawn_mask((), 7), b))

    square = drawn_mask((2, 3), 7)
    add("where", "equal shapes", [draw(2, 3), draw(2, 3)], lambda a, b: torch.where(square, a, b))
    column = drawn_mask((2, 1), 7)
    add("where", "all three broadcast", [draw(3), draw(2, 1, 1)], lambda a, b: torch.where(column, a, b))
    add("where", "scalars chosen by a matrix", [draw(), draw()], lambda a, b: torch.where(square, a, b))

    for operation, f in ("maximum", torch.maximum), ("minimum", torch.minimum):
        add(operation, "a row and a column", [draw(3), draw(2, 1)], f)
        add(operation, "scalars", [draw(), draw()], f)
        add(operation, "a tensor with itself", [draw(2, 3)], lambda a, f=f: f(a, a))
        add(operation, "a matrix and its transpose", [draw(3, 3)], lambda a, f=f: f(a, a.T))
        add(operation, "large and tiny", [draw(2, 3, low=-1e30, high=1e30), draw(3, low=-1e-9, high=1e-9)], f)
        add(operation, "equal numbers", [draw(2, 3, low=0, high=0), draw(3, low=0, high=0)], f)

    add("dropout", "half of a matrix", [draw(4, 5)], lambda a: a * kept(a.shape, 0.5))
    add("dropout", "a tenth of three axes", [draw(2, 3, 4)], lambda a: a * kept(a.shape, 0.1))
    add("dropout", "twice, with other masks", [draw(12)],
        lambda a: a * kept(a.shape, 0.5) + a * kept(a.shape, 0.5, call=1))
    add("dropout", "probability 0", [draw(2, 3)], lambda a: a * a)
    add("dropout", "not training", [draw(2, 3)], lambda a: a * a)
