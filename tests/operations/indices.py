import torch
import torch.nn.functional as F

from attention import causal
from table import add, draw


def add_samples():
    add("argmax", "rows", [draw(2, 4)], lambda a: a.argmax(-1))
    add("argmax", "a vector", [draw(5)], lambda a: a.argmax(0))
    add("argmax", "a long row, large", [draw(40, low=-1e30, high=1e30)], lambda a: a.argmax(0))

    def accuracy(name, logits, labels):
        known = torch.tensor(labels) != -100
        add("accuracy", name, [logits], lambda a: (a.argmax(-1) == torch.tensor(labels))[known].double().mean())

    accuracy("rows", draw(4, 3), [2, 0, 1, 1])
    accuracy("one label", draw(3), 0)
    accuracy("an array of three axes, one label ignored", draw(2, 3, 4), [[0, 3, -100], [1, 2, 2]])
    add("one_hot", "ids of two axes", [], lambda: F.one_hot(torch.tensor([[2, 0], [1, 1]]), 3))
    add("one_hot", "one id", [], lambda: F.one_hot(torch.tensor(1), 3))
    add("causal_mask", "square", [], lambda: causal(3, 3))
    add("causal_mask", "tall", [], lambda: causal(4, 2))
    add("causal_mask", "no rows", [], lambda: causal(0, 3))
    add("padding_mask", "two rows", [], lambda: torch.tensor([[3, 1, 0], [2, 0, 0]]) != 0)
