#!/usr/bin/env python3
"""Sample pages in the format of inspect/page/FORMAT.md, from small models in NumPy.

    sample.py FOLDER [NAME...]    writes NAME.html, by default all samples
"""

import math
import pathlib
import sys

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from assemble import assemble
from operations import Operations
from tape import Tape, array_json

EVIL = "</script><img src=x onerror=alert(1)>{{data}}"


def page(title, tapes, left_out=()):
    return {"version": 1, "title": title, "left_out": list(left_out), "steps": [tape.step() for tape in tapes]}


# ---- the backward pass of attention by hand --------------------------------------------------------------------------


def one_head(stop=None):
    """Like manual_backward's: T = 3 tokens of width 2, heads of width 4. The backward pass stops at the value `stop`."""
    random = np.random.default_rng(1)
    draw = lambda *shape: np.round(random.uniform(-1, 1, shape), 1)
    tape = Tape("one head")
    f = Operations(tape)
    X, Wq, Wk = tape.parameter("X", draw(3, 2)), tape.parameter("Wq", draw(2, 4)), tape.parameter("Wk", draw(2, 4))
    Q = f.matmul(X, Wq).named("Q")
    K = f.matmul(X, Wk).named("K")
    V = f.matmul(X, tape.parameter("Wv", draw(2, 4))).named("V")
    S = f.times(f.matmul(Q, f.transpose(K)), 0.5).named("S")
    P = f.softmax(S).named("P")
    Z = f.matmul(P, V).named("Z")
    O = f.matmul(Z, tape.parameter("Wo", draw(4, 2))).named("O")
    values = {"S": S, "X": X}
    tape.backward(f.mse_loss(O, tape.constant(draw(3, 2), "Y")).named("L"), values.get(stop))
    words = ["the", "river", "bank"]
    for value, along in ((X, 1), (Q, 1), (K, 1), (V, 1), (Z, 1), (O, 1), (S, 2), (P, 2)):
        value.fields["axes"] = [words, words if along == 2 else None]
        value.fields["axis_names"] = ["query", "key"] if along == 2 else ["token", ""]
    return tape


def several_heads():
    random = np.random.default_rng(2)
    draw = lambda *shape: np.round(random.uniform(-1, 1, shape), 1)
    tape = Tape("several heads")
    f = Operations(tape)
    B, T, D, H = 2, 3, 4, 2
    X = tape.parameter("X", draw(B, T, D)).named("X", axis_names=["batch", "token", ""])

    def projected(x, name):
        y = f.matmul(x, tape.parameter(f"W{name}", draw(D, D)))
        return f.add_bias(y, tape.parameter(f"b{name}", draw(D))).named(
            name if name != "o" else "O", axis_names=["batch", "token", ""]
        )

    q, k, v = (projected(X, name) for name in "qkv")
    names = ["batch", "head", "token", ""]
    Q, K, V = (f.split(x, H).named(name, axis_names=names) for x, name in ((q, "Q"), (k, "K"), (v, "V")))
    scores = ["batch", "head", "query", "key"]
    S = f.times(f.matmul(Q, f.transpose(K)), 1 / math.sqrt(D // H)).named("S", axis_names=scores)
    causal = np.tril(np.ones((T, T)))[None, None].repeat(B, 0)
    causal[1, 0, :, 2] = 0  # padding
    M = f.masked_fill(S, causal == 0, -1e20).named("M", axis_names=scores)
    P = f.softmax(M).named("P", axis_names=scores)
    Z = f.matmul(P, V).named("Z", axis_names=names)
    z = f.merge(Z).named("z", axis_names=["batch", "token", ""])
    O = projected(z, "o")
    tape.backward(f.mse_loss(O, tape.constant(draw(B, T, D), "Y")).named("L"))
    return tape


def manual_backward():
    return page("The backward pass of attention by hand", [one_head(), several_heads()])


# ---- layers ----------------------------------------------------------------------------------------------------------


class Model:
    """Layers on a tape. Parameters persist between steps."""

    def __init__(self, seed):
        self.random, self.parameters = np.random.default_rng(seed), {}

    def record(self, label, profile=False):
        self.tape = Tape(label, np.random.default_rng(0) if profile else None)
        self.f, self.on_tape = Operations(self.tape), {}

    def parameter(self, name, shape, first=None):
        if name not in self.parameters:
            bound = 1 / math.sqrt(shape[-1])
            self.parameters[name] = (
                self.random.uniform(-bound, bound, shape) if first is None else np.full(shape, first)
            )
        if name not in self.on_tape:
            self.on_tape[name] = self.tape.parameter(name, self.parameters[name].copy())
        return self.on_tape[name]

    def linear(self, x, path, width):
        w = self.parameter(f"{path}.weight", (width, x.array.shape[-1]))
        return self.f.linear(x, w, self.parameter(f"{path}.bias", (width,)))

    def norm(self, x, path):
        width = x.array.shape[-1:]
        return self.f.layer_norm(
            x, self.parameter(f"{path}.weight", width, 1.0), self.parameter(f"{path}.bias", width, 0.0)
        )

    def attention(self, x, path, heads, **options):
        q, k, v = (self.linear(x, f"{path}.{part}_proj", x.array.shape[-1]) for part in "qkv")
        return self.linear(self.f.attention(q, k, v, heads, **options), f"{path}.out_proj", x.array.shape[-1])

    def descend(self, lr):
        for name, value in self.on_tape.items():
            if value.gradient is not None:
                self.parameters[name] -= lr * value.gradient


def classify(model, ids, labels, tokens, classes, label):
    model.record(label)
    f = model.f
    x = f.embedding(model.parameter("embedding.weight", (12, 8)), ids)
    x.named("", axis_names=["batch", "token", ""])
    y = model.attention(x, "attention", 2, tokens=tokens)
    logits = model.linear(f.mean(y, 1), "head", 3).named("logits", axes=[None, classes], axis_names=["batch", "class"])
    model.tape.backward(f.cross_entropy(logits, labels))
    return model.tape


IDS = np.array([[1, 2, 3], [4, 5, 6]])
TOKENS = [["the", "river", "bank"], ["a", "money", "bank"]]


def classifier():
    tape = classify(Model(3), IDS, np.array([0, 2]), TOKENS, ["water", "earth", "money"], "step 0")
    return page('Step 0 <of> a "classifier"', [tape])


def training():
    """A classifier's attention in the course of training."""
    model, tapes = Model(3), []
    for step in range(41):
        tape = classify(model, IDS, np.array([0, 2]), TOKENS, ["water", "earth", "money"], f"step {step}")
        model.descend(1.0)
        if step % 5 == 0:
            tapes.append(tape)
    return page("A classifier learns", tapes, ["Of 41 steps every fifth is kept."])


def evil():
    model = Model(4)
    tape = classify(model, IDS, np.array([0, 2]), [[EVIL, "<b>bold</b>", "&amp;"]] * 2, [EVIL] * 3, EVIL)
    for value in tape.values:
        value.fields["name"] = (value.fields["name"] + EVIL) if value.fields["kind"] != "operation" else EVIL
        value.fields["axis_names"] = [EVIL + str(axis) for axis in range(value.array.ndim)]
    tape.values[-1].fields.update(operation=EVIL, formula=EVIL, rules=[EVIL])
    data = page(EVIL, [tape, tape], [EVIL])
    nodes = data["steps"][0]["nodes"]
    for node in nodes:
        node["layer"] = EVIL if node["kind"] == "operation" else ""
        if node["gradient"]:
            node["compared"] = {"name": EVIL, "gradient": node["value"]}
    data["steps"][0]["opened_at"] = {"node": len(nodes) - 1, "backward": True, "text": EVIL}
    return data


def gpt(layers=4, heads=4, width=32, context=32, batch=2):
    model = Model(5)
    model.record("step 0", profile=True)
    f = model.f
    text = "to be or not to be, that is the question: whether 'tis nobler in the mind"
    letters = sorted(set(text))
    ids = np.array([[letters.index(c) for c in text[i : i + context]] for i in (0, 29)])[:batch]
    targets = np.array([[letters.index(c) for c in text[i + 1 : i + context + 1]] for i in (0, 29)])[:batch]
    tokens = [[letters[i].replace(" ", "␣") for i in entry] for entry in ids]
    names = ["batch", "token", ""]
    x = f.embedding(model.parameter("tokens.weight", (len(letters), width)), ids).named("", axis_names=names)
    x = f.add(x, f.embedding(model.parameter("positions.weight", (context, width)), np.arange(context)))
    causal = np.tril(np.ones((context, context)))[None, None]
    for i in range(layers):
        path = f"blocks.{i}"
        y = model.attention(model.norm(x, f"{path}.norm1"), f"{path}.attention", heads, allowed=causal, tokens=tokens)
        x = f.add(x, y)
        y = f.gelu(model.linear(model.norm(x, f"{path}.norm2"), f"{path}.linear1", 4 * width))
        x = f.add(x, model.linear(y, f"{path}.linear2", width))
    logits = model.linear(model.norm(x, "norm"), "head", len(letters))
    logits.named("logits", axes=[None, None, letters], axis_names=["batch", "token", "letter"])
    model.tape.backward(f.cross_entropy(logits, targets))
    for value in model.tape.values:
        if value.array.ndim == 3 and "axis_names" not in value.fields:
            value.fields["axis_names"] = names
    return page("A GPT of 4 layers and 4 heads", [model.tape])


def broken():
    """Three faulty steps: NaN, vanishing gradients, and a parameter without a path to the loss."""
    model = Model(6)
    model.record("NaN")
    f = model.f
    x = f.embedding(model.parameter("letters.weight", (10, 6)), IDS)
    p = f.softmax(f.times(model.linear(f.mean(x, 1), "head", 4), 2000)).named("p")
    model.tape.backward(f.sum(f.mul(p, f.log(p))))
    tapes = [model.tape]

    model = Model(7)
    model.record("vanishing")
    f = model.f
    x = model.tape.constant(model.random.normal(size=(16, 24)), "x")
    for i in range(8):
        x = f.sigmoid(model.linear(x, f"layers.{i}", 24))
    model.tape.backward(f.cross_entropy(model.linear(x, "head", 3), model.random.integers(0, 3, 16)))
    tapes.append(model.tape)

    model = Model(8)
    model.record("unreached and dead")
    f = model.f
    x = model.tape.constant(model.random.normal(size=(16, 24)), "x")
    model.parameter("hidden.bias", (32,), -1.0)
    hidden = f.relu(model.linear(x, "hidden", 32))
    model.linear(hidden, "unused", 3)
    model.tape.backward(f.cross_entropy(model.linear(hidden, "head", 3), model.random.integers(0, 3, 16)))
    tapes.append(model.tape)
    return page("What can go wrong", tapes)


def trouble():
    """A correct step, a backward pass stopped by an error, and gradients unequal to central differences."""
    stopped = one_head("S")
    stopped.label = "anomaly"
    S = next(value for value in stopped.values if value.fields["name"] == "S")
    stopped.opened_at = {"node": S.number, "backward": True, "text": "[mul] expected finite values, got NaN"}

    model = Model(10)
    model.record("gradient check")
    f = model.f
    x = model.tape.constant(model.random.normal(size=(5, 3)), "x")
    hidden = model.linear(x, "hidden", 4)
    model.tape.backward(f.sum(model.linear(f.mul(hidden, hidden), "head", 2)))
    for name, value in model.on_tape.items():
        numeric = value.gradient.copy()
        if name == "hidden.weight":
            value.gradient[2, 1], numeric[2, 1] = 0.25, 0.5
        value.fields["compared"] = {"name": "numeric", "gradient": array_json(numeric + 1e-5)}
    wrong = model.on_tape["hidden.weight"].number
    model.tape.opened_at = {"node": wrong, "backward": True, "text": "hidden.weight(2, 1): analytic 0.25, numeric 0.5"}
    return page("What went wrong", [one_head(), stopped, model.tape])


def large():
    """A step with arrays stored as means."""
    model = Model(9)
    model.record("step 0")
    f = model.f
    x = f.embedding(model.parameter("words.weight", (5000, 64)), model.random.integers(0, 5000, (8, 100)))
    padding = (np.arange(100) < 60)[None, None, None].repeat(100, 2)
    x = model.attention(x, "attention", 4, allowed=padding)
    logits = model.linear(f.mean(x, 1), "head", 5)
    model.tape.backward(f.cross_entropy(logits, np.arange(8) % 5))
    return page("Large arrays", [model.tape], ["Arrays of more than 65,536 numbers are averaged down."])


def long(steps=600):
    """3,000 operations: a recurrent network that reads its parameters at every step."""
    random = np.random.default_rng(11)
    tape = Tape("step 0")
    f = Operations(tape)
    draw = lambda *shape: random.uniform(-1, 1, shape)
    W, U, b = (tape.parameter(name, draw(*shape)) for name, shape in (("W", (3, 4)), ("U", (4, 4)), ("b", (4,))))
    h = tape.constant(np.zeros((2, 4)), "h0")
    for i in range(steps):
        x = tape.constant(draw(2, 3), f"x{i}")
        h = f.sigmoid(f.add_bias(f.add(f.matmul(x, W), f.matmul(h, U)), b)).named(f"h{i + 1}")
    tape.backward(f.mse_loss(h, tape.constant(draw(2, 4), "t")))
    return page("A long tape", [tape])


ALL = (manual_backward, classifier, training, gpt, broken, trouble, evil, large, long)
SAMPLES = {sample.__name__: sample for sample in ALL}


def main(folder, *names):
    for name in names or SAMPLES:
        file = pathlib.Path(folder) / f"{name}.html"
        file.write_text(assemble(SAMPLES[name]()), encoding="utf-8")
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
