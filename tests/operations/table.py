"""The table of operations in PyTorch: the samples that this folder's C++ files add, by the same names, in double."""

import math
import struct

import torch

# ---- the library's random numbers, engine/array/random_bits.hpp ---------------------------------------------------

BITS = (1 << 64) - 1


def random_bits(key, i):
    z = (key + (i + 1) * 0x9E3779B97F4A7C15) & BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
    return z ^ (z >> 31)


def random_uniform(key, i):
    return (random_bits(key, i) >> 11) * 2.0**-53


def to_float(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def draw(*shape, low=-1, high=1, gap=0):
    return shape, low, high, gap


def numbers(drawn, key):
    shape, low, high, gap = drawn
    x = [low + (high - low) * random_uniform(key, i) for i in range(math.prod(shape))]
    return torch.tensor([to_float(v + math.copysign(gap, v)) for v in x], dtype=torch.double).reshape(shape)


def drawn_mask(shape, key):
    x = [random_uniform(key, i) < 2 / 3 for i in range(math.prod(shape))]
    return torch.tensor(x, dtype=torch.bool).reshape(shape)


def kept(shape, p, call=0):
    """The factors of the call-th dropout after manual_seed(0)."""
    key = random_bits(random_bits(0, 0), call)
    x = [0 if random_uniform(key, i) < p else 1 / (1 - p) for i in range(math.prod(shape))]
    return torch.tensor(x, dtype=torch.double).reshape(shape)


# ---- the samples --------------------------------------------------------------------------------------------------

results = {}


def listed(x):
    return [list(x.shape), x.detach().flatten().tolist()]


def add(operation, name, inputs, f):
    title = f"{operation}: {name}"
    assert title not in results, title
    x = [numbers(drawn, key).requires_grad_() for key, drawn in enumerate(inputs)]
    y = f(*x).double()
    gradients = [None for _ in x]
    if y.requires_grad:
        gradients = torch.autograd.grad(y, x, numbers(draw(*y.shape), len(x)), allow_unused=True)
    filled = [torch.zeros_like(a) if g is None else g for a, g in zip(x, gradients)]
    results[title] = [listed(result) for result in [y, *filled]]
