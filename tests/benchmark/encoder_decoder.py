#!/usr/bin/env python3
"""Times the model of examples/pronounce, without rotary positions and trained with AdamW, with tapegrad and with
PyTorch, in turn:

    encoder_decoder.py build/release/tests/benchmark/encoder_decoder [ROUNDS]

Both have the same weights and the same batch: 128 words of 12 letters and 11 phonemes. PyTorch's nn.TransformerDecoder
has no cache, so it reads all phonemes of a word again for each new one. OMP_NUM_THREADS sets PyTorch's threads.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "pytorch"))

import torch
from torch import nn

import tensor_file

WIDTH, HEADS, LAYERS = 128, 4, 3
BLOCK = dict(dim_feedforward=4 * WIDTH, dropout=0, activation="gelu", batch_first=True, norm_first=True)


class EncoderDecoder(nn.Module):
    def __init__(self, weights):
        super().__init__()
        for name in "source", "source_positions", "target", "target_positions":
            setattr(self, name, nn.Embedding(*weights[f"{name}.weight"].shape))
        encoder, decoder = (layer(WIDTH, HEADS, **BLOCK)
                            for layer in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer))
        self.encoder = nn.TransformerEncoder(encoder, LAYERS, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder, LAYERS, nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, weights["head.weight"].shape[0])
        self.load_state_dict({name: weight_of(name, weights) for name in self.state_dict()})

    def encode(self, ids):
        return self.encoder(self.source(ids) + self.source_positions.weight[:ids.shape[1]])

    def decode(self, before, memory):
        length = before.shape[1]
        x = self.target(before) + self.target_positions.weight[:length]
        return self.head(self.decoder(x, memory, nn.Transformer.generate_square_subsequent_mask(length)))


def weight_of(name, weights):
    """A parameter of PyTorch's model by tapegrad's names."""
    for theirs, ours in (("coder.layers.", "coder."), ("coder.norm.", "coder_norm."), ("multihead_attn", "cross_attention"),
                         ("self_attn", "attention"), ("linear", "feed_forward.fc")):
        name = name.replace(theirs, ours)
    for part in "weight", "bias":
        if name.endswith(f"in_proj_{part}"):
            prefix = name.removesuffix(f"in_proj_{part}")
            return torch.cat([weights[f"{prefix}{letter}_proj.{part}"] for letter in "qkv"])
    return weights[name]


def median_milliseconds(repetitions, work):
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def measure(weights):
    """The loss of the first step, and the milliseconds of a step and of a word."""
    model = EncoderDecoder({name.removeprefix("model."): weight for name, weight in weights.items()})
    sources, targets = weights["sources"], weights["targets"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []

    def step():
        optimizer.zero_grad()
        logits = model.decode(targets[:, :-1], model.encode(sources))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets[:, 1:].flatten())
        losses.append(loss.item())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()

    @torch.no_grad()
    def write_word():
        memory = model.encode(sources[:1])
        before = torch.ones(1, 1, dtype=torch.long)
        for _ in range(targets.shape[1] - 1):
            next_id = model.decode(before, memory)[:, -1:].argmax(-1)
            before = torch.cat([before, next_id], 1)

    model.eval()
    word = median_milliseconds(100, write_word)
    model.train()
    milliseconds = median_milliseconds(40, step)
    return losses[0], milliseconds, word


def main(program, rounds="3"):
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/workload.safetensors"
        for _ in range(int(rounds)):
            output = subprocess.run([program, file], check=True, capture_output=True, text=True).stdout
            ours.append([float(number) for number in output.split()])
            theirs.append(measure(tensor_file.load(file)))
            assert abs(ours[-1][0] - theirs[-1][0]) < 1e-4, (ours[-1][0], theirs[-1][0])
    for name, column in ("training step", 1), ("word, token by token", 2):
        pair = [statistics.median(row[column] for row in rows) for rows in (ours, theirs)]
        print(f"{name:20}  tapegrad {pair[0]:7.2f} ms   PyTorch {pair[1]:7.2f} ms   {pair[1] / pair[0]:5.2f} times")


if __name__ == "__main__":
    main(*sys.argv[1:])
