#!/usr/bin/env python3
"""Loads a model folder in Hugging Face's format, published or saved by a program, into reference.py's models:

    load_saved.py FOLDER --ids 15 3 8 ...               prints the loss of the next ids
    load_saved.py FOLDER --expect gpt2                  compares the logits with that model's in ../fixtures/gpt2.json
    load_saved.py FOLDER --expect gpt2 --after adamw    compares the loss after a step of adamw or sgd
        --adapter DIR        adds LoRA's matrices in PEFT's layout to the weights
        --logits FILE.npy    writes the logits (B, T, V), in double
"""

import argparse
import json
import math
import pathlib
import re
import sys

sys.dont_write_bytecode = True
tests = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(tests / "pytorch"), str(tests / "operations")]

import numpy
import torch

import tensor_file
from reference import GPT2, Conv1D, make_model, next_id_loss
from table import random_uniform

BUFFERS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)|.*\.rotary_emb\.inv_freq")


def load_model(folder):
    """The model of config.json and model.safetensors, in double. The file must have each parameter with its shape.
    Besides these, it may only have buffers and a tied model's head, equal to its embedding."""
    config = json.loads((folder / "config.json").read_text())
    model = make_model(config).double()
    state = tensor_file.load(folder / "model.safetensors")
    state = {name.removeprefix("transformer."): array.double() for name, array in state.items()}
    state = {name: array for name, array in state.items() if not BUFFERS.fullmatch(name)}
    if not hasattr(model, "lm_head") and "lm_head.weight" in state:
        embedding = "wte.weight" if config["model_type"] == "gpt2" else "model.embed_tokens.weight"
        assert torch.equal(state.pop("lm_head.weight"), state[embedding]), "a tied head that is not the embedding"
    model.load_state_dict(state, strict=True)
    return model


def of_layer(config, name, pattern, of_all):
    """The layer's own setting if a key in the pattern matches its name, otherwise the common one."""
    own = [value for end, value in (config.get(pattern) or {}).items() if name.endswith("." + end)]
    return own[0] if own else config[of_all]


def add_adapter(model, folder):
    """W += scale B A for the weight W (out, in) of each adapted layer, A (r, in), B (out, r); Conv1D's is (in, out) (Hu
    et al. 2021, arXiv:2106.09685)."""
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["peft_type"] == "LORA", config["peft_type"]
    for key in "use_dora", "modules_to_save":
        assert not config.get(key), f"{key} is not read"
    assert config.get("bias", "none") == "none", "biases are not read"

    state = tensor_file.load(folder / "adapter_model.safetensors")
    targets = tuple("." + name for name in config["target_modules"])
    prefix = "base_model.model." + ("transformer." if isinstance(model, GPT2) else "")
    layers = {prefix + name: layer for name, layer in model.named_modules() if name.endswith(targets)}
    names = {f"{name}.lora_{side}.weight" for name in layers for side in "AB"}
    assert state.keys() == names, f"only in the file or only expected: {sorted(state.keys() ^ names)}"
    for name, layer in layers.items():
        rank = of_layer(config, name, "rank_pattern", "r")
        scale = of_layer(config, name, "alpha_pattern", "lora_alpha") / (
            math.sqrt(rank) if config.get("use_rslora") else rank)
        assert config["fan_in_fan_out"] == isinstance(layer, Conv1D), f"fan_in_fan_out does not fit {name}"
        a, b = (state[f"{name}.lora_{side}.weight"].double() for side in "AB")
        assert a.shape[0] == b.shape[1] == rank, f"{name} is not of rank {rank}"
        added = scale * b @ a  # (out, in)
        added = added.T if isinstance(layer, Conv1D) else added
        assert added.shape == layer.weight.shape, f"{name}: {tuple(added.shape)} for {tuple(layer.weight.shape)}"
        layer.weight.data += added


def check_logits(logits, expected):
    """Expects the fixture's logits, within 1e-4."""
    vocabulary = logits.shape[-1]
    weights = torch.tensor([random_uniform(0, i) for i in range(vocabulary)], dtype=torch.double)
    checksums = torch.tensor(expected["checksums"], dtype=torch.double)
    torch.testing.assert_close(logits @ weights, checksums, rtol=0, atol=1e-4 * math.sqrt(vocabulary))
    last = torch.tensor(expected["last"], dtype=torch.double)
    torch.testing.assert_close(logits[:, -1], last, rtol=0, atol=1e-4)


def check_loss(loss, expected):
    assert abs(loss - expected) < 1e-4, f"expected a loss of {expected}, got {loss}"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    ids = parser.add_mutually_exclusive_group(required=True)
    ids.add_argument("--ids", type=int, nargs="+")
    ids.add_argument("--expect", metavar="MODEL")
    parser.add_argument("--after", choices=["adamw", "sgd"])
    parser.add_argument("--adapter", type=pathlib.Path)
    parser.add_argument("--logits", type=pathlib.Path)
    options = parser.parse_args(arguments)
    if options.after and not options.expect:
        parser.error("--after: expected --expect, too")
    return options


@torch.no_grad()
def main(arguments):
    options = parse(arguments)
    model = load_model(options.folder)
    if options.adapter:
        add_adapter(model, options.adapter)
    fixture = json.loads((tests / "fixtures" / "gpt2.json").read_text())[options.expect] if options.expect else None
    ids = torch.tensor(fixture["ids"] if fixture else [options.ids])  # (B, T)
    logits = model(ids)
    loss = next_id_loss(logits, ids).item()
    print(f"loss {loss:.9g}")
    if options.logits:
        numpy.save(options.logits, logits.numpy())
    if options.after:
        check_loss(loss, fixture[options.after]["loss_after"])
    elif fixture:
        check_logits(logits, fixture["logits"])
        check_loss(loss, fixture["loss"])


if __name__ == "__main__":
    main(sys.argv[1:])
