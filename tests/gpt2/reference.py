"""GPT-2 and Llama in plain PyTorch, from their definitions. Parameters have the names, shapes and layouts of Hugging
Face's state_dict, for GPT-2 without the prefix `transformer.`; a config is the dict of a config.json.

A model maps ids (B, T) to logits (B, T, V). It has neither dropout nor a cache.
"""

import math

import torch
from torch.nn import Embedding, LayerNorm, Linear, Module, ModuleList, Parameter
from torch.nn.functional import cross_entropy, gelu, silu


def make_model(config):
    return {"gpt2": GPT2, "llama": Llama}[config["model_type"]](config)


def next_id_loss(logits, ids):
    """The mean cross entropy of all ids but the first, from the logits at the previous position."""
    return cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def attend(q, k, v):
    """softmax(q kᵀ / √D + mask) v of each head, with a causal mask; all (B, H, T, D)."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, T, T)
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(-1) @ v


def split_heads(x, heads):  # (B, T, H D) -> (B, H, T, D)
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x):  # (B, H, T, D) -> (B, T, H D)
    return x.transpose(1, 2).flatten(2)


# ---- GPT-2 (Radford et al. 2019) -----------------------------------------------------------------------------------


class GPT2(Module):
    def __init__(self, config):
        super().__init__()
        assert config.get("activation_function", "gelu_new") == "gelu_new"
        width = config["n_embd"]
        self.wte = Embedding(config["vocab_size"], width)
        self.wpe = Embedding(config["n_positions"], width)
        self.h = ModuleList(GPT2Block(config) for _ in range(config["n_layer"]))
        self.ln_f = LayerNorm(width, config["layer_norm_epsilon"])
        if not config.get("tie_word_embeddings", True):
            self.lm_head = Linear(width, config["vocab_size"], bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))  # (B, T, C)
        for block in self.h:
            x = block(x)
        head = self.lm_head if hasattr(self, "lm_head") else self.wte
        return self.ln_f(x) @ head.weight.T


class Conv1D(Module):
    """A linear map with the weight as (in, out), like OpenAI's checkpoints: the transpose of Linear's."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = Parameter(torch.empty(inputs, outputs))
        self.bias = Parameter(torch.empty(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class GPT2Block(Module):
    def __init__(self, config):
        super().__init__()
        width, eps = config["n_embd"], config["layer_norm_epsilon"]
        self.ln_1 = LayerNorm(width, eps)
        self.attn = GPT2Attention(width, config["n_head"])
        self.ln_2 = LayerNorm(width, eps)
        self.mlp = GPT2MLP(width, config.get("n_inner") or 4 * width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2Attention(Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width)  # queries, keys and values next to each other
        self.c_proj = Conv1D(width, width)

    def forward(self, x):
        q, k, v = (split_heads(part, self.heads) for part in self.c_attn(x).chunk(3, -1))
        return self.c_proj(join_heads(attend(q, k, v)))


class GPT2MLP(Module):
    def __init__(self, width, inner):
        super().__init__()
        self.c_fc = Conv1D(width, inner)
        self.c_proj = Conv1D(inner, width)

    def forward(self, x):
        return self.c_proj(gelu(self.c_fc(x), approximate="tanh"))


# ---- Llama (Touvron et al. 2023, arXiv:2302.13971 and arXiv:2307.09288) --------------------------------------------


class Llama(Module):
    def __init__(self, config):
        super().__init__()
        assert config.get("hidden_act", "silu") == "silu" and not config.get("rope_scaling")
        assert not config.get("attention_bias") and not config.get("mlp_bias")
        self.model = LlamaModel(config)
        if not config.get("tie_word_embeddings", False):
            self.lm_head = Linear(config["hidden_size"], config["vocab_size"], bias=False)

    def forward(self, ids):
        head = self.lm_head if hasattr(self, "lm_head") else self.model.embed_tokens
        return self.model(ids) @ head.weight.T


class LlamaModel(Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = ModuleList(LlamaLayer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = RMSNorm(config["hidden_size"], config["rms_norm_eps"])

    def forward(self, ids):
        x = self.embed_tokens(ids)  # (B, T, C)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class RMSNorm(Module):
    """weight x / √(mean x² + eps), over the last axis (Zhang and Sennrich 2019, arXiv:1910.07467)."""

    def __init__(self, width, eps):
        super().__init__()
        self.eps = eps
        self.weight = Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


class LlamaLayer(Module):
    def __init__(self, config):
        super().__init__()
        width, eps = config["hidden_size"], config["rms_norm_eps"]
        self.input_layernorm = RMSNorm(width, eps)
        self.self_attn = LlamaAttention(config)
        self.post_attention_layernorm = RMSNorm(width, eps)
        self.mlp = LlamaMLP(width, config["intermediate_size"])

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaAttention(Module):
    def __init__(self, config):
        super().__init__()
        width, self.heads = config["hidden_size"], config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads") or self.heads
        self.theta = config.get("rope_theta", 10000.0)
        size = config.get("head_dim") or width // self.heads
        self.q_proj = Linear(width, self.heads * size, bias=False)
        self.k_proj = Linear(width, self.kv_heads * size, bias=False)
        self.v_proj = Linear(width, self.kv_heads * size, bias=False)
        self.o_proj = Linear(self.heads * size, width, bias=False)

    def forward(self, x):
        q = rotate(split_heads(self.q_proj(x), self.heads), self.theta)  # (B, H, T, D)
        k = rotate(split_heads(self.k_proj(x), self.kv_heads), self.theta)
        v = split_heads(self.v_proj(x), self.kv_heads)
        shared_by = self.heads // self.kv_heads  # query heads 0, 1, ... use key head 0, and so on
        k, v = k.repeat_interleave(shared_by, 1), v.repeat_interleave(shared_by, 1)
        return self.o_proj(join_heads(attend(q, k, v)))


def rotate(x, theta):
    """Rotary positions (Su et al. 2021, arXiv:2104.09864) of (B, H, T, D): rotates the elements j and j + D / 2 at
    position t by the angle t theta^(-2 j / D)."""
    time, size = x.shape[-2:]
    inv_freq = theta ** (-torch.arange(0, size, 2, dtype=x.dtype) / size)  # (D / 2)
    angles = torch.outer(torch.arange(time, dtype=x.dtype), inv_freq)  # (T, D / 2)
    cos, sin = angles.cos(), angles.sin()
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class LlamaMLP(Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj = Linear(width, inner, bias=False)
        self.up_proj = Linear(width, inner, bias=False)
        self.down_proj = Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))
