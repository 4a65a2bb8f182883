import math

import torch

from table import add, draw, drawn_mask, kept, numbers


def causal(rows, columns):
    return torch.ones(rows, columns, dtype=torch.bool).tril()


def first(*lengths):
    return torch.arange(4) < torch.tensor(lengths)[..., None]


EVERY_KEY = torch.tensor(True)
PADDING = torch.tensor([[1, 1, 0, 1], [1, 0, 0, 0]]).bool()[:, None, None]
LENGTHS = first(4, 2)[:, None, None]
LENGTHS_OF_QUERIES = first([1, 4, 3], [2, 0, 9])[:, None]
ALLOWED = drawn_mask((3, 4), 7)
ALLOWED_BY_BATCH = drawn_mask((2, 1, 3, 4), 7)
ALLOWED_BY_HEAD = drawn_mask((1, 2, 1, 4), 8)
BIAS = numbers(draw(3, 4, low=-2, high=2), 7)
BIAS_BY_HEAD = numbers(draw(1, 2, 3, 1, low=-2, high=2), 8)
INFINITIES = torch.tensor([[0, -math.inf, 0.5, 0], [-math.inf, 0, 0, 0], [1, 2, 3, -math.inf]], dtype=torch.double)

# The visible keys, and the term added to the scores.
MASKS = {
    "no mask": (EVERY_KEY, 0),
    "causal": (causal(3, 4), 0),
    "key padding": (PADDING, 0),
    "valid lengths": (LENGTHS, 0),
    "valid lengths of every query": (LENGTHS_OF_QUERIES, 0),
    "allowed (T, S)": (ALLOWED, 0),
    "allowed (B, 1, T, S)": (ALLOWED_BY_BATCH, 0),
    "allowed (1, H, 1, S)": (ALLOWED_BY_HEAD, 0),
    "added (T, S)": (EVERY_KEY, BIAS),
    "added (1, H, T, 1)": (EVERY_KEY, BIAS_BY_HEAD),
    "added infinities": (EVERY_KEY, INFINITIES),
    "all keys hidden": (~EVERY_KEY, 0),
    "causal and key padding": (causal(3, 4) & PADDING, 0),
    "two of lengths, two allowed, two added": (
        LENGTHS & LENGTHS_OF_QUERIES & ALLOWED_BY_BATCH & ALLOWED_BY_HEAD,
        BIAS + BIAS_BY_HEAD,
    ),
}


def masked_softmax(scores, mask=(EVERY_KEY, 0)):
    allowed, bias = mask
    scores = (scores + bias).masked_fill(~allowed, -math.inf)
    sees_nothing = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(sees_nothing, 0).softmax(-1).masked_fill(sees_nothing, 0)


def attention(q, k, v, mask=(EVERY_KEY, 0), scale=None, dropout=0):
    scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    weights = masked_softmax(scores, mask)
    return weights * kept(weights.shape, dropout) @ v


def split(x, heads):
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(1, 2)


def multi_head(q, k, v, heads, *options, groups=None, **named):
    """Each of the `groups` heads of keys and values serves heads // groups heads of queries."""
    groups = groups or heads
    q, k, v = split(q, heads), split(k, groups), split(v, groups)
    if groups < heads:
        k, v = [x.repeat_interleave(heads // groups, 1) for x in (k, v)]
    y = attention(q, k, v, *options, **named).transpose(1, 2)
    return y.reshape(*y.shape[:2], y.shape[2] * y.shape[3])


def rotary(x, heads, base=10000.0, first=0):
    """Rotates queries and keys like Hugging Face's Llama."""
    x = split(x, heads)
    times, width = x.shape[2:]
    positions = torch.arange(first, first + times, dtype=torch.double)
    angles = positions[:, None] * base ** (-torch.arange(0, width, 2, dtype=torch.double) / width)
    angles = torch.cat([angles, angles], -1)  # (T, D)
    x1, x2 = x.chunk(2, -1)
    y = (x * angles.cos() + torch.cat([-x2, x1], -1) * angles.sin()).transpose(1, 2)
    return y.reshape(*y.shape[:2], y.shape[2] * y.shape[3])


def add_samples():
    def masks(operation, inputs, f):
        for name, mask in MASKS.items():
            add(operation, name, inputs, lambda *x: f(*x, mask))

    name, two = "scaled_dot_product_attention", {"low": -2, "high": 2}
    masks(name, [draw(2, 2, 3, 2, **two), draw(2, 2, 4, 2, **two), draw(2, 2, 4, 1)], attention)
    add(name, "two axes", [draw(3, 2), draw(4, 2), draw(4, 3)], attention)
    add(name, "values of no width", [draw(3, 2), draw(4, 2), draw(4, 0)], attention)
    add(name, "no keys", [draw(3, 2), draw(0, 2), draw(0, 3)], attention)
    add(name, "no queries", [draw(0, 2), draw(4, 2), draw(4, 3)], attention)
    add(name, "large", [draw(2, 2, low=-100, high=100), draw(4, 2, low=-100, high=100), draw(4, 2)], attention)
    tiny = {"low": -1e-4, "high": 1e-4}
    add(name, "tiny", [draw(2, 2, **tiny), draw(4, 2, **tiny), draw(4, 2)], attention)
    itself = (causal(3, 3), 0)
    add(name, "queries, keys and values are one", [draw(2, 1, 3, 2, **two)], lambda a: attention(a, a, a, itself))
    add(name, "keys and values are one", [draw(3, 2, **two), draw(4, 2, **two)], lambda a, b: attention(a, b, b))
    add(name, "another scale", [draw(3, 2), draw(4, 2), draw(4, 2)], lambda *x: attention(*x, scale=2.5))
    add(name, "dropout", [draw(2, 2, 3, 2), draw(2, 2, 4, 2), draw(2, 2, 4, 1)],
        lambda *x: attention(*x, MASKS["key padding"], dropout=0.3))

    name = "multi_head_attention"
    masks(name, [draw(2, 3, 4, **two), draw(2, 4, 4, **two), draw(2, 4, 2)],
          lambda q, k, v, mask: multi_head(q, k, v, 2, mask))
    add(name, "as many heads as features", [draw(1, 3, 4), draw(1, 2, 4), draw(1, 2, 4)], lambda *x: multi_head(*x, 4))
    add(name, "no queries", [draw(1, 0, 4), draw(1, 2, 4), draw(1, 2, 2)], lambda *x: multi_head(*x, 2))
    add(name, "large and tiny", [draw(1, 2, 4, low=-1e4, high=1e4), draw(1, 4, 4, **tiny), draw(1, 4, 2)],
        lambda *x: multi_head(*x, 2))
    add(name, "tiny", [draw(1, 2, 4, **tiny), draw(1, 4, 4, **tiny), draw(1, 4, 2)], lambda *x: multi_head(*x, 2))
    add(name, "no keys", [draw(1, 3, 4), draw(1, 0, 4), draw(1, 0, 2)], lambda *x: multi_head(*x, 2))
    add(name, "queries, keys and values are one", [draw(2, 3, 4, **two)], lambda a: multi_head(a, a, a, 2, itself))
    add(name, "keys and values are one", [draw(1, 3, 4, **two), draw(1, 4, 4, **two)],
        lambda a, b: multi_head(a, b, b, 2))
    add(name, "dropout", [draw(2, 3, 4), draw(2, 4, 4), draw(2, 4, 2)],
        lambda *x: multi_head(*x, 2, MASKS["key padding"], dropout=0.3))

    shared = [draw(2, 3, 8, **two), draw(2, 4, 4, **two), draw(2, 4, 6)]
    add(name, "two groups of two heads", shared, lambda *x: multi_head(*x, 4, groups=2))
    one_group = [draw(2, 3, 4, **two), draw(2, 4, 2, **two), draw(2, 4, 1)]
    add(name, "one group, dropout", one_group,
        lambda *x: multi_head(*x, 2, MASKS["key padding"], dropout=0.3, groups=1))
    add(name, "one group of three heads, keys and values are one", [draw(1, 3, 6, **two), draw(1, 4, 2, **two)],
        lambda a, b: multi_head(a, b, b, 3, groups=1))

    name = "rotary_embedding"
    add(name, "one head", [draw(2, 3, 4)], lambda a: rotary(a, 1))
    add(name, "two heads", [draw(2, 3, 8)], lambda a: rotary(a, 2))
    add(name, "heads of one pair", [draw(2, 5, 6)], lambda a: rotary(a, 3))
    add(name, "another base", [draw(1, 4, 6)], lambda a: rotary(a, 1, base=2.5))
    add(name, "further on", [draw(2, 3, 8)], lambda a: rotary(a, 2, first=7))
    add(name, "heads of no width", [draw(2, 3, 0)], lambda a: 1 * a)

    name = "masked_softmax"
    masks(name, [draw(2, 2, 3, 4, **two)], masked_softmax)
    add(name, "two axes", [draw(3, 4, **two)], lambda a: masked_softmax(a, (ALLOWED, BIAS)))
    add(name, "large", [draw(3, 4, low=-1e4, high=1e4)], lambda a: masked_softmax(a, MASKS["causal"]))
    add(name, "no keys", [draw(3, 0)], masked_softmax)
    add(name, "no queries", [draw(0, 4)], masked_softmax)
    add(name, "one key", [draw(3, 1)], masked_softmax)
