"""A tape in NumPy that writes what it recorded in the format of inspect/page/FORMAT.md, to make sample pages from."""

import base64
import collections

import numpy as np

MOST_STORED = 1 << 16  # numbers per array; larger arrays are stored as means


def array_json(array):
    """The format's array, stored as means if it is large."""
    array = np.asarray(array, dtype=np.float64)
    stored, pooled = array, [1] * array.ndim
    with np.errstate(invalid="ignore"):
        while stored.size > MOST_STORED:
            axis = int(np.argmax(stored.shape))
            halves = [
                stored.take(range(i, min(i + 2, stored.shape[axis])), axis) for i in range(0, stored.shape[axis], 2)
            ]
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
    """A node: its array and its fields in the format."""

    def __init__(self, tape, kind, array, **fields):
        self.array = np.asarray(array, dtype=np.float64)
        self.gradient = None
        self.contributions = []
        self.rule = None
        self.fields = {
            "kind": kind,
            "operation": "",
            "name": "",
            "layer": "",
            "inputs": [],
            "formula": "",
            "rules": [],
            **fields,
        }
        self.needs_gradient = kind == "parameter"
        self.number = len(tape.values)
        tape.values.append(self)

    def named(self, name, **fields):
        self.fields.update(name=name, **fields)
        return self


class Tape:
    def __init__(self, label, random=None):
        self.label, self.values, self.loss, self.opened_at = label, [], -1, None
        self.profile = random  # the generator of invented times

    def parameter(self, name, array):
        return Value(self, "parameter", array, name=name)

    def constant(self, array, name=""):
        return Value(self, "constant", array, name=name)

    def record(self, operation, inputs, array, formula, rules, rule, **fields):
        """rule: maps the result's gradient to those of the inputs; None: no gradient."""
        value = Value(self, "operation", array, operation=operation, formula=formula, rules=rules, **fields)
        value.fields["inputs"] = [x.number for x in inputs]
        value.rule = rule
        value.needs_gradient = any(x.needs_gradient for x in inputs)
        if self.profile is not None:
            size = value.array.size + sum(x.array.size for x in inputs)
            forward = 400 + size * self.profile.uniform(0.3, 3)
            value.fields.update(forward_ns=round(forward), backward_ns=round(forward * 2), saved_bytes=4 * size)
        return value

    def backward(self, loss, stop=None):
        """`stop`: an error ends the backward pass before this value's rule."""
        self.loss = loss.number
        loss.gradient = np.ones(loss.array.shape)
        for value in reversed(self.values[: loss.number + 1]):
            if value is stop:
                break
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
        readers = collections.Counter(
            source for value in self.values if value.contributions for source in value.fields["inputs"]
        )
        nodes = []
        for value in self.values:
            node = dict(value.fields, shape=list(value.array.shape), value=array_json(value.array))
            if node["name"]:
                node["find"] = f'tape.find<float>("{node["name"]}")'
            node["gradient"] = None if value.gradient is None else array_json(value.gradient)
            node["reached"] = value.gradient is not None
            if value.contributions:  # only of inputs with other readers: a single reader's is the whole gradient
                node["contributions"] = [
                    None if part is None or readers[source] == 1 else array_json(part)
                    for part, source in zip(value.contributions, value.fields["inputs"])
                ]
            if "attention" in node:
                node["attention"] = node["attention"](value)
            nodes.append(node)
        opened_at = {"opened_at": self.opened_at} if self.opened_at else {}
        return {"label": self.label, "loss": self.loss, "nodes": nodes, **opened_at}

    def _layers(self):
        """Assigns layers to operations by the names of the parameters around them, as the scopes of layers would."""
        operations = [value for value in self.values if value.fields["kind"] == "operation"]
        own = []
        for value in operations:
            paths = [
                self.values[i].fields["name"]
                for i in value.fields["inputs"]
                if self.values[i].fields["kind"] == "parameter"
            ]
            own.append(common([path.split(".")[:-1] for path in paths]) if paths else None)
        for i, value in enumerate(operations):
            before = next((path for path in reversed(own[: i + 1]) if path is not None), [])
            after = next((path for path in own[i:] if path is not None), [])
            layer = own[i] if own[i] is not None else common([before, after])
            is_list = (
                bool(layer)
                and layer == before[: len(layer)]
                and before[len(layer) : len(layer) + 1]
                and before[len(layer)].isdigit()
            )
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
