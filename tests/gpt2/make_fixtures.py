#!/usr/bin/env python3
"""Writes ../fixtures/gpt2.json: results of reference.py's small models in PyTorch (1.13) and double: logits, the loss
of the next ids, its gradients, and the loss after one step of AdamW and of SGD.

The weights come from the library's random numbers, so the fixture has only results. All are multiples of 1/128 with at
most 8 significant bits: F32, F16 and BF16 store the same model. Arrays have a summary: the root of the sum of squares,
a checksum that detects swapped elements, and a few elements.
"""

import copy
import json
import math
import pathlib
import sys

sys.dont_write_bytecode = True
tests = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(tests / "operations"))

import torch

from reference import make_model, next_id_loss
from table import random_uniform

torch.set_default_dtype(torch.double)

VOCABULARY, BATCH, TIME = 384, 2, 13

# Published settings, but without dropout, so that a training step has one result.
GPT2 = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.0,
    "bos_token_id": 383,
    "embd_pdrop": 0.0,
    "eos_token_id": 383,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2",
    "n_ctx": 24,
    "n_embd": 32,
    "n_head": 4,
    "n_inner": None,
    "n_layer": 2,
    "n_positions": 24,
    "reorder_and_upcast_attn": False,
    "resid_pdrop": 0.0,
    "scale_attn_by_inverse_layer_idx": False,
    "scale_attn_weights": True,
    "summary_activation": None,
    "summary_first_dropout": 0.1,
    "summary_proj_to_labels": True,
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    "torch_dtype": "float32",
    "transformers_version": "4.38.0",
    "use_cache": True,
    "vocab_size": VOCABULARY,
}
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 383,
    "eos_token_id": 383,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 80,
    "max_position_embeddings": 24,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "transformers_version": "4.38.0",
    "use_cache": True,
    "vocab_size": VOCABULARY,
}
CONFIGS = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "llama tied": {**LLAMA, "num_key_value_heads": 4, "tie_word_embeddings": True},
    "llama with one key head": {**LLAMA, "num_key_value_heads": 1},
    "llama with wide heads": {**LLAMA, "head_dim": 16, "mlp_bias": False, "rope_theta": 500000.0},  # in newer files
}
CLIP = 1.0
ADAMW = {"lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}  # 1-D parameters do not decay
SGD = {"lr": 0.1}


def range_of(name):
    """The interval [low, high) of a parameter: around 1 for norms, larger for embeddings."""
    if name.endswith("weight") and ("norm" in name or "ln_" in name):
        return 0.75, 1.25
    if name.endswith(("wte.weight", "embed_tokens.weight", "lm_head.weight")):
        return -0.5, 0.5
    return -0.25, 0.25


def drawn(shape, low, high, key):
    x = [math.floor(128 * (low + (high - low) * random_uniform(key, i))) / 128 for i in range(math.prod(shape))]
    return torch.tensor(x).reshape(shape)


def digits(x):
    return float(f"{x:.12g}")


def checksum(x):
    """The sum of all elements, each multiplied by a different random number."""
    return digits(sum(a * random_uniform(0, i) for i, a in enumerate(x.flatten().tolist())))


def summary(x):
    flat = x.detach().flatten()
    places = sorted({0, flat.abs().argmax().item(), len(flat) // 3, len(flat) - 1})
    elements = [[place, digits(flat[place].item())] for place in places]
    return {"norm": digits(flat.norm().item()), "checksum": checksum(flat), "elements": elements}


def after_step(model, ids, make_optimizer):
    """A copy of the model after a step."""
    model = copy.deepcopy(model)
    model.zero_grad()
    next_id_loss(model(ids), ids).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    make_optimizer(model).step()
    return model


def adamw(model):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    return torch.optim.AdamW([{"params": matrices}, {"params": others, "weight_decay": 0}], **ADAMW)


def sgd(model):
    return torch.optim.SGD(model.parameters(), **SGD)


def results(config):
    model = make_model(config)
    tensors = []
    for key, (name, parameter) in enumerate(model.named_parameters(), 1):
        low, high = range_of(name)
        parameter.data.copy_(drawn(parameter.shape, low, high, key))
        tensors.append({"name": name, "shape": list(parameter.shape), "low": low, "high": high, "key": key})
    ids = torch.tensor([int(VOCABULARY * random_uniform(100, i)) for i in range(BATCH * TIME)]).view(BATCH, TIME)

    logits = model(ids)
    loss = next_id_loss(logits, ids)
    loss.backward()
    losses_after = {f: digits(next_id_loss(after_step(model, ids, f)(ids), ids).item()) for f in (adamw, sgd)}
    gradients = [parameter.grad for parameter in model.parameters()]
    for tensor, parameter in zip(tensors, model.parameters()):
        tensor |= {"values": summary(parameter), "gradient": summary(parameter.grad)}
    return {
        "config": config,
        "ids": ids.tolist(),
        "logits": {
            "checksums": [[checksum(row) for row in sequence] for sequence in logits],  # (B, T)
            "last": [[round(x, 7) for x in sequence[-1].tolist()] for sequence in logits],  # (B, V)
        },
        "loss": digits(loss.item()),
        "gradient_norm": digits(torch.cat([g.flatten() for g in gradients]).norm().item()),
        "clip": CLIP,
        "adamw": {**ADAMW, "loss_after": losses_after[adamw]},
        "sgd": {**SGD, "loss_after": losses_after[sgd]},
        "tensors": tensors,
    }


def lines(x, depth):
    """JSON with a line for each element, down to a depth."""
    compact = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
    if depth == 0 or not isinstance(x, (dict, list)) or not x:
        return compact(x)
    if isinstance(x, dict):
        return "{\n" + ",\n".join(f"{compact(name)}:{lines(value, depth - 1)}" for name, value in x.items()) + "\n}"
    return "[\n" + ",\n".join(lines(value, depth - 1) for value in x) + "\n]"


if __name__ == "__main__":
    fixture = {name: results(config) for name, config in CONFIGS.items()}
    (tests / "fixtures" / "gpt2.json").write_text(lines(fixture, 3) + "\n")
    for name, result in fixture.items():
        print(f"{name}: loss {result['loss']:.4f}, gradients' norm {result['gradient_norm']:.4f}, after AdamW "
              f"{result['adamw']['loss_after']:.4f}, after SGD {result['sgd']['loss_after']:.4f}")
