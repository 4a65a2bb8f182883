#!/usr/bin/env python3
"""Compares checkpoints and state_dicts in both directions:

    state_dict.py PROGRAM

PROGRAM, built from state_dict.cpp, saves a GPT. PyTorch loads it with strict=True and must compute the same results.
PyTorch then trains it for a step and saves it; the program loads it and must compute the same results as PyTorch.
"""

import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import torch
from torch.nn import Embedding, LayerNorm, Module, ModuleList
from torch.nn.functional import cross_entropy, gelu, linear

from layers import Block
from tensor_file import load, save

torch.set_default_dtype(torch.double)

TOKENS, CONTEXT, WIDTH, HEADS, LAYERS = 11, 6, 8, 2, 3


class Gpt(Module):
    def __init__(self):
        super().__init__()
        self.tokens = Embedding(TOKENS, WIDTH)
        self.positions = Embedding(CONTEXT, WIDTH)
        self.blocks = ModuleList(Block(WIDTH, HEADS, 4 * WIDTH, gelu) for _ in range(LAYERS))
        self.norm = LayerNorm(WIDTH)
        self.register_buffer("scale", torch.zeros(WIDTH))

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return linear(self.norm(x) * self.scale, self.tokens.weight)


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        model_file, results_file = f"{folder}/model.safetensors", f"{folder}/results.safetensors"

        subprocess.run([program, "save", model_file, results_file], check=True)
        results = load(results_file)
        gpt = Gpt()
        gpt.load_state_dict(load(model_file), strict=True)
        torch.testing.assert_close(gpt(results["ids"]), results["logits"], rtol=0, atol=1e-12)

        optimizer = torch.optim.AdamW(gpt.parameters(), lr=0.1)
        cross_entropy(gpt(results["ids"]).transpose(1, 2), results["ids"]).backward()
        optimizer.step()
        save(gpt.state_dict(), model_file)
        subprocess.run([program, "load", model_file, results_file], check=True)
        trained = load(results_file)
        torch.testing.assert_close(gpt(results["ids"]), trained["logits"], rtol=0, atol=1e-12)
        assert (trained["logits"] - results["logits"]).abs().max() > 0.1
    print(f"{len(gpt.state_dict())} arrays compared in both directions")


main(sys.argv[1])
