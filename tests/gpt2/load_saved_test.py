#!/usr/bin/env python3
"""Tests load_saved.py against fixtures/gpt2.json on newly written folders, and against the definition of LoRA:

    load_saved_test.py PROGRAM

PROGRAM is built from write_folders.cpp.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import load_saved  # sets the path to tensor_file
import make_fixtures
import numpy
import tensor_file
import torch

torch.set_default_dtype(torch.double)

IDS = [15, 3, 8, 300, 41, 3]
RANK, ALPHA = 3, 12
ADAPTED = {"gpt2": ["attn.c_attn", "mlp.c_proj"], "llama": ["self_attn.q_proj", "mlp.down_proj"]}


def fails(*arguments):
    try:
        load_saved.main([str(argument) for argument in arguments])
    except (AssertionError, RuntimeError):
        return True
    return False


def change(folder, how):
    state = tensor_file.load(folder / "model.safetensors")
    how(state)
    tensor_file.save(state, folder / "model.safetensors")


def check_after_steps(folder, name):
    before = load_saved.load_model(folder)
    ids = torch.tensor(json.loads((load_saved.tests / "fixtures" / "gpt2.json").read_text())[name]["ids"])
    for step in make_fixtures.adamw, make_fixtures.sgd:
        state = make_fixtures.after_step(before, ids, step).float().state_dict()
        tensor_file.save(state, folder / "model.safetensors")
        load_saved.main([str(folder), "--expect", name, "--after", step.__name__])
        assert fails(folder, "--expect", name)


def draw_adapter(model, folder, targets, prefix):
    """Writes random matrices like PEFT. Returns them by layer."""
    folder.mkdir()
    ends = tuple("." + target for target in targets)
    layers = {name: layer for name, layer in model.named_modules() if name.endswith(ends)}
    is_conv = any(isinstance(layer, load_saved.Conv1D) for layer in layers.values())
    generator, matrices, state = torch.Generator().manual_seed(1), {}, {}
    for name, layer in layers.items():
        outputs, inputs = layer.weight.shape[::-1] if is_conv else layer.weight.shape
        a, b = (torch.randn(shape, generator=generator) for shape in [(RANK, inputs), (outputs, RANK)])
        matrices[layer] = a, b
        state[f"base_model.model.{prefix}{name}.lora_A.weight"] = a
        state[f"base_model.model.{prefix}{name}.lora_B.weight"] = b
    config = {
        "base_model_name_or_path": None,
        "bias": "none",
        "fan_in_fan_out": is_conv,
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.0,
        "modules_to_save": None,
        "peft_type": "LORA",
        "r": RANK,
        "target_modules": targets,
        "task_type": "CAUSAL_LM",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    tensor_file.save(state, folder / "adapter_model.safetensors")
    return matrices


def check_adapter(model_folder, targets, prefix, folder):
    """Compares layers plus (alpha / r) B A x with layers whose weights have the adapter merged."""
    model = load_saved.load_model(model_folder)
    before = model(torch.tensor([IDS]))
    for layer, (a, b) in draw_adapter(model, folder / "adapter", targets, prefix).items():
        layer.register_forward_hook(lambda _, x, y, a=a, b=b: y + ALPHA / RANK * (x[0] @ a.T @ b.T))
    after = model(torch.tensor([IDS]))
    assert (after - before).abs().max() > 0.1

    load_saved.main([str(model_folder), "--ids", *map(str, IDS), "--adapter", str(folder / "adapter"), "--logits",
                     str(folder / "logits.npy")])
    logits = torch.from_numpy(numpy.load(folder / "logits.npy"))
    torch.testing.assert_close(logits, after.detach(), rtol=0, atol=1e-9)


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([program, folder], check=True)
        saved = sorted(folder.iterdir())
        assert len(saved) == 30
        for path in saved:
            load_saved.main([str(path), "--expect", path.name.split(",")[0]])
        assert fails(folder / "gpt2,F32", "--expect", "gpt2", "--after", "adamw")
        assert fails(folder / "gpt2,F32", "--expect", "llama")
        assert fails(folder / "llama,F32", "--expect", "llama with one key head")

        check_after_steps(folder / "llama tied,F32", "llama tied")

        change(folder / "gpt2,F32", lambda state: state["h.1.mlp.c_fc.weight"][3, 5].add_(0.01))
        assert fails(folder / "gpt2,F32", "--expect", "gpt2")
        change(folder / "gpt2,F32", lambda state: state.pop("ln_f.bias"))
        assert fails(folder / "gpt2,F32", "--ids", *IDS)
        change(folder / "gpt2,F32, with buffers", lambda state: state["lm_head.weight"][3, 5].add_(0.01))
        assert fails(folder / "gpt2,F32, with buffers", "--expect", "gpt2")
        # Each logit of a position is wrong by the same number, so the loss does not change.
        change(folder / "llama,F32", lambda state: state["lm_head.weight"].add_(0.01))
        assert fails(folder / "llama,F32", "--expect", "llama")

        for name, prefix in ("gpt2", "transformer."), ("llama", ""):
            (folder / name).mkdir()
            check_adapter(folder / f"{name},BF16", ADAPTED[name], prefix, folder / name)
    print(f"{len(saved)} folders and {len(ADAPTED)} adapters")


main(sys.argv[1])
