"""The library's layers in PyTorch, with its names: a state_dict of theirs is a checkpoint of ours."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "operations"))

from torch.nn import LayerNorm, Linear, Module
from torch.nn.functional import gelu

from attention import EVERY_KEY, causal, multi_head


class MultiHeadAttention(Module):
    def __init__(self, dim, heads, query_dim=None, key_dim=None, value_dim=None, bias=True):
        super().__init__()
        self.heads = heads
        self.q_proj = Linear(query_dim or dim, dim, bias)
        self.k_proj = Linear(key_dim or dim, dim, bias)
        self.v_proj = Linear(value_dim or dim, dim, bias)
        self.out_proj = Linear(dim, dim, bias)

    def forward(self, queries, keys, values, allowed=EVERY_KEY):
        projected = self.q_proj(queries), self.k_proj(keys), self.v_proj(values)
        return self.out_proj(multi_head(*projected, self.heads, (allowed, 0)))


def gelu_tanh(x):
    return gelu(x, approximate="tanh")


class FeedForward(Module):
    def __init__(self, width, hidden, activation, bias):
        super().__init__()
        self.activation = activation
        self.fc1 = Linear(width, hidden, bias)
        self.fc2 = Linear(hidden, width, bias)

    def forward(self, x):
        return self.fc2(self.activation(self.fc1(x)))


def make_norm(width, bias):
    norm = LayerNorm(width)
    if not bias:
        norm.bias = None
    return norm


class Block(Module):
    """A causal TransformerBlock; norm: "first", "last" or "none"."""

    def __init__(self, width, heads, hidden, activation, norm="first", bias=True):
        super().__init__()
        self.norm = norm
        if norm != "none":
            self.norm1 = make_norm(width, bias)
        self.attention = MultiHeadAttention(width, heads, bias=bias)
        if norm != "none":
            self.norm2 = make_norm(width, bias)
        self.feed_forward = FeedForward(width, hidden, activation, bias)

    def attend(self, x):
        return self.attention(x, x, x, causal(x.shape[1], x.shape[1]))

    def forward(self, x):
        if self.norm == "first":
            x = x + self.attend(self.norm1(x))
            return x + self.feed_forward(self.norm2(x))
        if self.norm == "last":
            x = self.norm1(x + self.attend(x))
            return self.norm2(x + self.feed_forward(x))
        x = x + self.attend(x)
        return x + self.feed_forward(x)
