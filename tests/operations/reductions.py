import torch
import torch.nn.functional as F

from table import add, draw


def rms(x, axes, weight=None, eps=1e-6):
    """PyTorch 2.4's rms_norm over the last axes, as its documentation defines it."""
    h = x / torch.sqrt((x * x).mean(tuple(range(-axes, 0)), keepdim=True) + eps)
    return h if weight is None else h * weight


def add_samples():
    def reduction(operation, f):
        add(operation, "all of a matrix", [draw(2, 3)], lambda a: f(a, (0, 1)))
        add(operation, "all, kept", [draw(2, 3)], lambda a: f(a, (0, 1), True))
        add(operation, "the outer axes of three", [draw(2, 3, 2)], lambda a: f(a, (0, -1)))
        add(operation, "the middle axes of four, kept", [draw(2, 2, 3, 2)], lambda a: f(a, (2, 1), True))

    for operation, f in ("sum", torch.sum), ("mean", torch.mean), ("amax", torch.amax):
        reduction(operation, f)
        add(operation, "large", [draw(2, 3, low=1e29, high=1e30)], lambda a: f(a, (0, 1)))
        add(operation, "tiny", [draw(2, 3, low=1e-30, high=1e-29)], lambda a: f(a, (0, 1)))

    reduction("var", lambda a, axes, keep=False: torch.var(a, axes, correction=0, keepdim=keep))
    add("var", "large", [draw(2, 3, low=1e9, high=1e10)], torch.var)
    add("var", "tiny", [draw(2, 3, low=1e-8, high=1e-7)], torch.var)
    add("var", "around a large number", [draw(2, 4, low=1023, high=1025)], lambda a: a.var(1))
    add("var", "corrected", [draw(2, 4)], lambda a: a.var(1))
    add("var", "corrected by 2, kept", [draw(2, 4)], lambda a: torch.var(a, 1, correction=2, keepdim=True))
    add("var", "equal elements", [draw(3, 1)], lambda a: a.expand(3, 4).var(1))
    add("sum", "of nothing", [draw(0, 2)], torch.sum)
    add("amax", "the largest of every row twice", [draw(2, 3)], lambda a: torch.cat([a, a], 1).amax(1))

    def row_function(operation, f):
        def row(*shape):
            return [draw(*shape, low=-2, high=2)]

        add(operation, "the last axis of a matrix", row(2, 3), lambda a: f(a, -1))
        add(operation, "a vector", row(4), lambda a: f(a, 0))
        add(operation, "large", [draw(2, 4, low=-1e4, high=1e4)], lambda a: f(a, -1))
        add(operation, "around a large number", [draw(2, 4, low=16383, high=16385)], lambda a: f(a, -1))
        add(operation, "tiny", [draw(2, 4, low=-1e-8, high=1e-8)], lambda a: f(a, -1))

    row_function("softmax", torch.softmax)
    row_function("log_softmax", torch.log_softmax)

    def layer_norm(name, x, *normalized, **options):
        inputs = [x, draw(*normalized), draw(*normalized)]
        add("layer_norm", name, inputs, lambda a, w, b: F.layer_norm(a, normalized, w, b, **options))

    layer_norm("a vector", draw(4), 4)
    layer_norm("over the last two axes", draw(2, 2, 3), 2, 3)
    layer_norm("large", draw(2, 4, low=-1e4, high=1e4), 4)
    layer_norm("around a large number", draw(2, 4, low=63, high=65), 4)
    layer_norm("tiny", draw(2, 4, low=-1e-4, high=1e-4), 4)
    add("layer_norm", "no weight and no bias", [draw(2, 4)], lambda a: F.layer_norm(a, [4]))
    add("layer_norm", "no bias", [draw(2, 4), draw(4)], lambda a, w: F.layer_norm(a, [4], w))
    add("layer_norm", "no weight", [draw(2, 4), draw(4)], lambda a, b: F.layer_norm(a, [4], None, b))
    layer_norm("another eps", draw(2, 4), 4, eps=0.5)

    def rms_norm(name, x, *normalized, **options):
        add("rms_norm", name, [x, draw(*normalized)], lambda a, w: rms(a, len(normalized), w, **options))

    rms_norm("a vector", draw(4), 4)
    rms_norm("over the last two axes", draw(2, 2, 3), 2, 3)
    rms_norm("large", draw(2, 4, low=-1e4, high=1e4), 4)
    rms_norm("around a large number", draw(2, 4, low=63, high=65), 4)
    rms_norm("tiny", draw(2, 4, low=-1e-4, high=1e-4), 4)
    rms_norm("another eps", draw(2, 4), 4, eps=0.5)
    add("rms_norm", "no weight", [draw(2, 2, 4)], lambda a: rms(a, 1))
    add("rms_norm", "a vector also as weight", [draw(4)], lambda a: rms(a, 1, a))

    ids = torch.tensor([[3, 0, 3], [1, 3, 0]])
    add("embedding", "ids of two axes, some twice", [draw(4, 3)], lambda a: F.embedding(ids, a))
    none = torch.zeros(2, 0, dtype=torch.long)
    add("embedding", "no ids", [draw(4, 3)], lambda a: F.embedding(none, a))
    padded = torch.tensor([[3, 0, 0], [1, 0, 3]])
    add("embedding", "padding", [draw(4, 2)], lambda a: F.embedding(padded, a, padding_idx=0))
