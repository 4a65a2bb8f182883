"""A tape in NumPy that writes what it recorded in the format of layers/page/FORMAT.md, to make sample pages from."""

import base64
import math
import re

import numpy as np

MOST_STORED = 1 << 16  # numbers of an array; larger ones are averaged down


def array_json(array):
    """The format's array: averaged down where it is large."""
    array = np.asarray(array, dtype=np.float64)
    stored, pooled = array, [1] * array.ndim
    with np.errstate(invalid="ignore"):
        while stored.size > MOST_STORED:
            axis = int(np.argmax(stored.shape))
            halves = [stored.take(range(i, min(i + 2, stored.shape[axis])), axis) for i in range(0, stored.shape[axis], 2)]
            stored = np.stack([half.mean(axis) for half in halves], axis)
            pooled[axis] *= 2
    result = {
        "shape": list(stored.shape),
        "data": base64.b64encode(stored.astype("<f4").tobytes()).decode(),
        "statistics": statistics(array),
    }
    if max(pooled, default=1) > 1:
        result["pooled"] = pooled
    return result


def statistics(array):
    array = array.astype(np.float32).astype(np.float64)
    finite = array[np.isfinite(array)]
    known = finite.size > 0
    return {
        "count": int(array.size),
        "least": float(finite.min()) if known else None,
        "largest": float(finite.max()) if known else None,
        "mean": float(finite.mean()) if known else None,
        "deviation": float(finite.std()) if known else None,
        "norm": float(np.sqrt((finite**2).sum())) if known else None,
        "zeros": int((array == 0).sum()),
        "nan": int(np.isnan(array).sum()),
        "infinite": int(np.isinf(array).sum()),
    }


class Value:
    """A node: its array and what the format says of it."""

    def __init__(self, tape, kind, array, **fields):
        self.array = np.asarray(array, dtype=np.float64)
        self.gradient = None
        self.contributions = []
        self.rule = None
        self.fields = {"kind": kind, "operation": "", "name": "", "layer": "", "inputs": [], "formula": "", "rules": [], **fields}
        self.needs_gradient = kind == "parameter"
        self.number = len(tape.values)
        tape.values.append(self)

    def named(self, name, **fields):
        self.fields.update(name=name, **fields)
        return self


class Tape:
    def __init__(self, label, random=None):
        self.label, self.values, self.loss = label, [], -1
        self.profile = random  # of made-up times

    def parameter(self, name, array):
        return Value(self, "parameter", array, name=name)

    def constant(self, array, name=""):
        return Value(self, "constant", array, name=name)

    def record(self, operation, inputs, array, formula, rules, rule, **fields):
        """rule: the gradient of the result -> those of the inputs, None where nothing is passed on."""
        value = Value(self, "operation", array, operation=operation, formula=formula, rules=rules, **fields)
        value.fields["inputs"] = [x.number for x in inputs]
        value.rule = rule
        value.needs_gradient = any(x.needs_gradient for x in inputs)
        if self.profile is not None:
            size = value.array.size + sum(x.array.size for x in inputs)
            forward = 400 + size * self.profile.uniform(0.3, 3)
            value.fields.update(forward_ns=round(forward), backward_ns=round(forward * 2), saved_bytes=4 * size)
        return value

    def backward(self, loss):
        self.loss = loss.number
        loss.gradient = np.ones(loss.array.shape)
        for value in reversed(self.values[: loss.number + 1]):
            if value.rule is None or value.gradient is None or not value.needs_gradient:
                continue
            inputs = [self.values[i] for i in value.fields["inputs"]]
            for x, part in zip(inputs, value.rule(value.gradient)):
                part = unbroadcast(part, x.array.shape) if part is not None and x.needs_gradient else None
                value.contributions.append(part)
                if part is not None:
                    x.gradient = part if x.gradient is None else x.gradient + part
        return loss

    def step(self):
        """The format's step."""
        self._layers()
        nodes = []
        for value in self.values:
            node = dict(value.fields, shape=list(value.array.shape), value=array_json(value.array))
            node["gradient"] = None if value.gradient is None else array_json(value.gradient)
            node["reached"] = value.gradient is not None
            if value.contributions:
                node["contributions"] = [self._contribution(value, i) for i in range(len(value.contributions))]
            if "attention" in node:
                node["attention"] = node["attention"](value)
            nodes.append(node)
        return {"label": self.label, "loss": self.loss, "nodes": nodes}

    def _contribution(self, value, i):
        part, source = value.contributions[i], value.fields["inputs"][i]
        uses = sum(other.fields["inputs"].count(source) for other in self.values if other.contributions)
        return None if part is None or uses == 1 else array_json(part)

    def _layers(self):
        """Gives operations the layers that FORMAT.md describes."""
        operations = [value for value in self.values if value.fields["kind"] == "operation"]
        own = []
        for value in operations:
            paths = [self.values[i].fields["name"] for i in value.fields["inputs"] if self.values[i].fields["kind"] == "parameter"]
            own.append(common([path.split(".")[:-1] for path in paths]) if paths else None)
        for i, value in enumerate(operations):
            before = next((path for path in reversed(own[: i + 1]) if path is not None), [])
            after = next((path for path in own[i:] if path is not None), [])
            layer = own[i] if own[i] is not None else common([before, after])
            is_list = bool(layer) and layer == before[: len(layer)] and before[len(layer) : len(layer) + 1] and before[len(layer)].isdigit()
            if own[i] is None and (not layer or is_list):
                numbers = [k for k, part in enumerate(before) if part.isdigit()]
                layer = before[: numbers[0] + 1] if numbers else []
            value.fields["layer"] = ".".join(layer)


def common(paths):
    result = []
    for parts in zip(*paths):
        if len(set(parts)) > 1:
            break
        result.append(parts[0])
    return result


def unbroadcast(gradient, shape):
    gradient = np.asarray(gradient)
    if gradient.ndim > len(shape):
        gradient = gradient.sum(tuple(range(gradient.ndim - len(shape))))
    for axis, extent in enumerate(shape):
        if extent == 1 and gradient.shape[axis] != 1:
            gradient = gradient.sum(axis, keepdims=True)
    return gradient


# ---- operations ------------------------------------------------------------------------------------------------------


def swap(x):
    return np.swapaxes(x, -1, -2)


def rows(x):
    """All axes but the last as one."""
    return x.reshape(-1, x.shape[-1])


class Operations:
    """The operations that the samples need, on a tape."""

    def __init__(self, tape):
        self.tape, self.record = tape, tape.record

    def matmul(self, a, b):
        return self.record("matmul", [a, b], a.array @ b.array, "y = a b", ["da = dy bᵀ", "db = aᵀ dy"], lambda dy: [dy @ swap(b.array), swap(a.array) @ dy])

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

    def masked_fill(self, x, hidden, number):
        hidden = np.broadcast_to(hidden, x.array.shape)
        return self.record(
            "masked_fill", [x], np.where(hidden, number, x.array), f"y = x, {number:g} where hidden", ["dx = dy, 0 where hidden"], lambda dy: [np.where(hidden, 0, dy)]
        )

    def softmax(self, x):
        e = np.exp(x.array - x.array.max(-1, keepdims=True))
        y = e / e.sum(-1, keepdims=True)
        return self.record(
            "softmax", [x], y, "y = softmax(x)", ["dx = y ⊙ (dy − Σ dy ⊙ y)"], lambda dy: [y * (dy - (dy * y).sum(-1, keepdims=True))]
        )

    def mse_loss(self, x, target):
        error = x.array - target.array
        scale = 2 / error.size
        return self.record(
            "mse_loss", [x, target], (error**2).mean(), "y = mean((x − t)²)", ["dx = 2/n (x − t) dy", "dt = 2/n (t − x) dy"], lambda dy: [dy * scale * error, -dy * scale * error]
        )

    def linear(self, x, w, b):
        y = x.array @ w.array.T + b.array
        return self.record(
            "linear", [x, w, b], y, "y = x Wᵀ + b", ["dx = dy W", "dW = dyᵀ x", "db = Σ dy"], lambda dy: [dy @ w.array, rows(dy).T @ rows(x.array), rows(dy).sum(0)]
        )

    def embedding(self, w, ids):
        def back(dy):
            dw = np.zeros(w.array.shape)
            np.add.at(dw, ids, dy)
            return [dw]

        return self.record("embedding", [w], w.array[ids], "y = W[ids]", ["dW[ids] += dy"], back)

    def mean(self, x, axis):
        n = x.array.shape[axis]
        return self.record("mean", [x], x.array.mean(axis), "y = Σ x / n", ["dx = dy / n"], lambda dy: [np.repeat(np.expand_dims(dy, axis) / n, n, axis)])

    def layer_norm(self, x, w, b):
        mean, deviation = x.array.mean(-1, keepdims=True), np.sqrt(x.array.var(-1, keepdims=True) + 1e-5)
        n = (x.array - mean) / deviation

        def back(dy):
            dn = dy * w.array
            dx = (dn - dn.mean(-1, keepdims=True) - n * (dn * n).mean(-1, keepdims=True)) / deviation
            return [dx, rows(dy * n).sum(0), rows(dy).sum(0)]

        formula = "y = w ⊙ (x − mean) / σ + b"
        return self.record("layer_norm", [x, w, b], n * w.array + b.array, formula, ["dx = (w ⊙ dy − its mean − n mean(n ⊙ w ⊙ dy)) / σ", "dw = Σ dy ⊙ n", "db = Σ dy"], back)

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
            return self.record("mul", [a, b], a.array * b.array, "y = a ⊙ b", ["da = dy ⊙ b", "db = dy ⊙ a"], lambda dy: [dy * b.array, dy * a.array])

    def sum(self, x):
        return self.record("sum", [x], x.array.sum(), "y = Σ x", ["dx = dy, everywhere"], lambda dy: [np.full(x.array.shape, dy)])

    def cross_entropy(self, logits, targets):
        z, t = rows(logits.array), np.ravel(targets)
        e = np.exp(z - z.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        error = (p - np.eye(p.shape[1])[t]) / len(t)
        loss = -np.log(p[np.arange(len(t)), t]).mean()
        formula = "y = −mean(log softmax(x)[target])"
        return self.record("cross_entropy", [logits], loss, formula, ["dx = (softmax(x) − one_hot) dy / n"], lambda dy: [dy * error.reshape(logits.array.shape)])

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
            return {"weights": array_json(p), "gradient": gradient, "allowed": None if allowed is None else array_json(allowed), **given}

        rules = ["dQ = dS K / √D", "dK = dSᵀ Q / √D", "dV = Pᵀ dy"]
        formula = "y = P V, P = softmax(S), S = Q Kᵀ / √D"
        return self.record("attention", [q, k, v], join(p @ V), formula, rules, back, attention=looked_at)
