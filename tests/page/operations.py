"""The samples' operations on a tape, each with its formula, its rules and their implementation."""

import math
import re

import numpy as np

from tape import array_json


def swap(x):
    return np.swapaxes(x, -1, -2)


def rows(x):
    """Flattens all axes but the last."""
    return x.reshape(-1, x.shape[-1])


class Operations:
    """The samples' operations on a tape."""

    def __init__(self, tape):
        self.tape, self.record = tape, tape.record

    def matmul(self, a, b):
        return self.record(
            "matmul",
            [a, b],
            a.array @ b.array,
            "y = a b",
            ["da = dy bᵀ", "db = aᵀ dy"],
            lambda dy: [dy @ swap(b.array), swap(a.array) @ dy],
        )

    def transpose(self, x):
        return self.record("transpose", [x], swap(x.array), "y = xᵀ", ["dx = dyᵀ"], lambda dy: [swap(dy)])

    def times(self, x, number):
        text = re.sub(r"\.0$", "", f"{number:.4g}")
        return self.record("mul", [x], x.array * number, f"y = {text} x", [f"dx = {text} dy"], lambda dy: [dy * number])

    def add(self, a, b):
        return self.record("add", [a, b], a.array + b.array, "y = a + b", ["da = dy", "db = dy"], lambda dy: [dy, dy])

    def add_bias(self, a, b):
        return self.record("add", [a, b], a.array + b.array, "y = a + b", ["da = dy", "db = Σ dy"], lambda dy: [dy, dy])

    def moved(self, operation, x, array, back):
        return self.record(operation, [x], array, f"y = {operation}(x)", ["dx = dy, moved back"], lambda dy: [back(dy)])

    def split(self, x, heads):
        b, t, d = x.array.shape
        y = self.moved("reshape", x, x.array.reshape(b, t, heads, d // heads), lambda dy: dy.reshape(b, t, d))
        return self.moved("transpose", y, y.array.swapaxes(1, 2), lambda dy: dy.swapaxes(1, 2))

    def merge(self, x):
        b, h, t, d = x.array.shape
        y = self.moved("transpose", x, x.array.swapaxes(1, 2), lambda dy: dy.swapaxes(1, 2))
        return self.moved("reshape", y, y.array.reshape(b, t, h * d), lambda dy: dy.reshape(b, t, h, d))

    def masked_fill(self, x, hidden, number, constant=None):
        """`constant`: the number as a value on the tape."""
        hidden = np.broadcast_to(hidden, x.array.shape)
        return self.record(
            "masked_fill",
            [x, constant] if constant else [x],
            np.where(hidden, number, x.array),
            f"y = x, {number:g} where hidden",
            ["dx = dy, 0 where hidden"],
            lambda dy: [np.where(hidden, 0, dy)],
        )

    def softmax(self, x):
        with np.errstate(invalid="ignore"):
            e = np.exp(x.array - x.array.max(-1, keepdims=True))
        y = e / e.sum(-1, keepdims=True)
        return self.record(
            "softmax",
            [x],
            y,
            "y = softmax(x)",
            ["dx = y ⊙ (dy − Σ dy ⊙ y)"],
            lambda dy: [y * (dy - (dy * y).sum(-1, keepdims=True))],
        )

    def mse_loss(self, x, target):
        error = x.array - target.array
        scale = 2 / error.size
        return self.record(
            "mse_loss",
            [x, target],
            (error**2).mean(),
            "y = mean((x − t)²)",
            ["dx = 2/n (x − t) dy", "dt = 2/n (t − x) dy"],
            lambda dy: [dy * scale * error, -dy * scale * error],
        )

    def linear(self, x, w, b):
        y = x.array @ w.array.T + b.array
        return self.record(
            "linear",
            [x, w, b],
            y,
            "y = x Wᵀ + b",
            ["dx = dy W", "dW = dyᵀ x", "db = Σ dy"],
            lambda dy: [dy @ w.array, rows(dy).T @ rows(x.array), rows(dy).sum(0)],
        )

    def embedding(self, w, ids):
        def back(dy):
            dw = np.zeros(w.array.shape)
            np.add.at(dw, ids, dy)
            return [dw]

        return self.record("embedding", [w], w.array[ids], "y = W[ids]", ["dW[ids] += dy"], back)

    def mean(self, x, axis):
        n = x.array.shape[axis]
        return self.record(
            "mean",
            [x],
            x.array.mean(axis),
            "y = Σ x / n",
            ["dx = dy / n"],
            lambda dy: [np.repeat(np.expand_dims(dy, axis) / n, n, axis)],
        )

    def layer_norm(self, x, w, b):
        mean, deviation = x.array.mean(-1, keepdims=True), np.sqrt(x.array.var(-1, keepdims=True) + 1e-5)
        n = (x.array - mean) / deviation

        def back(dy):
            dn = dy * w.array
            dx = (dn - dn.mean(-1, keepdims=True) - n * (dn * n).mean(-1, keepdims=True)) / deviation
            return [dx, rows(dy * n).sum(0), rows(dy).sum(0)]

        formula = "y = w ⊙ (x − mean) / σ + b"
        return self.record(
            "layer_norm",
            [x, w, b],
            n * w.array + b.array,
            formula,
            ["dx = (w ⊙ dy − its mean − n mean(n ⊙ w ⊙ dy)) / σ", "dw = Σ dy ⊙ n", "db = Σ dy"],
            back,
        )

    def unary(self, operation, x, y, slope, rule):
        def back(dy):
            with np.errstate(invalid="ignore"):
                return [dy * slope]

        return self.record(operation, [x], y, f"y = {operation}(x)", [rule], back)

    def relu(self, x):
        return self.unary("relu", x, np.maximum(x.array, 0), x.array > 0, "dx = dy where x > 0, else 0")

    def sigmoid(self, x):
        y = 1 / (1 + np.exp(-x.array))
        return self.unary("sigmoid", x, y, y * (1 - y), "dx = dy ⊙ y ⊙ (1 − y)")

    def gelu(self, x):
        phi = 0.5 * (1 + np.vectorize(math.erf)(x.array / math.sqrt(2)))
        slope = phi + x.array * np.exp(-(x.array**2) / 2) / math.sqrt(2 * math.pi)
        return self.unary("gelu", x, x.array * phi, slope, "dx = dy ⊙ (Φ(x) + x φ(x))")

    def log(self, x):
        with np.errstate(divide="ignore"):
            return self.unary("log", x, np.log(x.array), 1 / x.array, "dx = dy / x")

    def mul(self, a, b):
        with np.errstate(invalid="ignore"):
            return self.record(
                "mul",
                [a, b],
                a.array * b.array,
                "y = a ⊙ b",
                ["da = dy ⊙ b", "db = dy ⊙ a"],
                lambda dy: [dy * b.array, dy * a.array],
            )

    def sum(self, x):
        return self.record(
            "sum", [x], x.array.sum(), "y = Σ x", ["dx = dy, everywhere"], lambda dy: [np.full(x.array.shape, dy)]
        )

    def cross_entropy(self, logits, targets):
        z, t = rows(logits.array), np.ravel(targets)
        e = np.exp(z - z.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        error = (p - np.eye(p.shape[1])[t]) / len(t)
        loss = -np.log(p[np.arange(len(t)), t]).mean()
        formula = "y = −mean(log softmax(x)[target])"
        return self.record(
            "cross_entropy",
            [logits],
            loss,
            formula,
            ["dx = (softmax(x) − one_hot) dy / n"],
            lambda dy: [dy * error.reshape(logits.array.shape)],
        )

    def attention(self, q, k, v, heads, allowed=None, tokens=None):
        """q, k, v: (B, T, D), allowed: (B or 1, 1, T, S), tokens: of each batch entry"""
        b, _, d = q.array.shape
        scale = 1 / math.sqrt(d // heads)
        cut = lambda x: x.reshape(b, -1, heads, d // heads).swapaxes(1, 2)
        join = lambda x: x.swapaxes(1, 2).reshape(b, -1, d)
        Q, K, V = cut(q.array), cut(k.array), cut(v.array)
        scores = Q @ swap(K) * scale
        if allowed is not None:
            scores = np.where(allowed, scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)

        def back(dy):
            dz = cut(dy)
            dp = dz @ swap(V)
            ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
            return [join(ds @ K), join(swap(ds) @ Q), join(swap(p) @ dz)]

        def looked_at(value):
            given = {"queries": tokens, "keys": tokens} if tokens else {}
            gradient = None if value.gradient is None else array_json(cut(value.gradient) @ swap(V))
            return {
                "weights": array_json(p),
                "gradient": gradient,
                "allowed": None if allowed is None else array_json(allowed),
                **given,
            }

        rules = ["dQ = dS K / √D", "dK = dSᵀ Q / √D", "dV = Pᵀ dy"]
        formula = "y = P V, P = softmax(S), S = Q Kᵀ / √D"
        return self.record("multi_head_attention", [q, k, v], join(p @ V), formula, rules, back, attention=looked_at)
