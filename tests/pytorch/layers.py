"""The library's layers in PyTorch, with the same names, so a state_dict is also a checkpoint of the library."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "operations"))

import torch
from torch.nn import LayerNorm, Linear, Module, Parameter
from torch.nn.functional import gelu

from attention import EVERY_KEY, causal, multi_head, rotary
from reductions import rms


class MultiHeadAttention(Module):
    def __init__(self, dim, heads, query_dim=None, key_dim=None, value_dim=None, bias=True, kv_heads=None,
                 rotary_base=None):
        super().__init__()
        self.heads, self.kv_heads, self.rotary_base = heads, kv_heads or heads, rotary_base
        kv_width = dim // heads * self.kv_heads
        self.q_proj = Linear(query_dim or dim, dim, bias)
        self.k_proj = Linear(key_dim or dim, kv_width, bias)
        self.v_proj = Linear(value_dim or dim, kv_width, bias)
        self.out_proj = Linear(dim, dim, bias)

    def forward(self, queries, keys, values, allowed=EVERY_KEY):
        q, k, v = self.q_proj(queries), self.k_proj(keys), self.v_proj(values)
        if self.rotary_base:
            q, k = rotary(q, self.heads, self.rotary_base), rotary(k, self.kv_heads, self.rotary_base)
        return self.out_proj(multi_head(q, k, v, self.heads, (allowed, 0), groups=self.kv_heads))


def gelu_tanh(x):
    return gelu(x, approximate="tanh")


class FeedForward(Module):
    def __init__(self, width, hidden, activation, bias, gated=False):
        super().__init__()
        self.activation = activation
        self.gate = Linear(width, hidden, bias) if gated else None
        self.fc1 = Linear(width, hidden, bias)
        self.fc2 = Linear(hidden, width, bias)

    def forward(self, x):
        h = self.fc1(x)
        return self.fc2(self.activation(self.gate(x)) * h if self.gate else self.activation(h))


class RMSNorm(Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = Parameter(torch.ones(width)), eps

    def forward(self, x):
        return rms(x, 1, self.weight, self.eps)


def make_norm(width, bias, rms_eps):
    if rms_eps:
        return RMSNorm(width, rms_eps)
    norm = LayerNorm(width)
    if not bias:
        norm.bias = None
    return norm


class Residuals(Module):
    """The residual parts of a block; norm: "first", "last" or "none"."""

    def add(self, x, part, f):
        if self.norm == "first":
            return x + f(getattr(self, part)(x))
        if self.norm == "last":
            return getattr(self, part)(x + f(x))
        return x + f(x)


class Block(Residuals):
    """A causal TransformerBlock; rms_eps: eps of RMSNorms instead of LayerNorms."""

    def __init__(self, width, heads, hidden, activation, norm="first", bias=True, rms_eps=None, kv_heads=None,
                 rotary_base=None, gated=False):
        super().__init__()
        self.norm = norm
        if norm != "none":
            self.norm1 = make_norm(width, bias, rms_eps)
        self.attention = MultiHeadAttention(width, heads, bias=bias, kv_heads=kv_heads, rotary_base=rotary_base)
        if norm != "none":
            self.norm2 = make_norm(width, bias, rms_eps)
        self.feed_forward = FeedForward(width, hidden, activation, bias, gated)

    def attend(self, x):
        return self.attention(x, x, x, causal(x.shape[1], x.shape[1]))

    def forward(self, x):
        return self.add(self.add(x, "norm1", self.attend), "norm2", self.feed_forward)


class DecoderBlock(Residuals):
    """A causal TransformerDecoderBlock, with Block's options."""

    def __init__(self, width, heads, hidden, activation, norm="first", bias=True, rms_eps=None, kv_heads=None,
                 rotary_base=None, gated=False, memory_width=None):
        super().__init__()
        self.norm = norm
        if norm != "none":
            self.norm1 = make_norm(width, bias, rms_eps)
        self.attention = MultiHeadAttention(width, heads, bias=bias, kv_heads=kv_heads, rotary_base=rotary_base)
        if norm != "none":
            self.norm2 = make_norm(width, bias, rms_eps)
        self.cross_attention = MultiHeadAttention(width, heads, key_dim=memory_width, value_dim=memory_width, bias=bias,
                                                  kv_heads=kv_heads)
        if norm != "none":
            self.norm3 = make_norm(width, bias, rms_eps)
        self.feed_forward = FeedForward(width, hidden, activation, bias, gated)

    def forward(self, x, memory, allowed=EVERY_KEY):
        x = self.add(x, "norm1", lambda h: self.attention(h, h, h, causal(h.shape[1], h.shape[1])))
        x = self.add(x, "norm2", lambda h: self.cross_attention(h, memory, memory, allowed))
        return self.add(x, "norm3", self.feed_forward)
