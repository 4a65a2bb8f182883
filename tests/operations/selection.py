import torch

from table import add, draw


def add_samples():
    def gather(name, x, axis, index):
        add("gather", name, [x], lambda a: a.gather(axis, torch.tensor(index, dtype=torch.long)))

    gather("columns, some twice", draw(2, 3), 1, [[2, 0, 2, 1], [0, 0, 1, 2]])
    gather("from some rows alone", draw(3, 4), 1, [[3, 3]])
    gather("from parts of four axes", draw(2, 3, 2, 3), 1, [[[[2, 0]], [[2, 2]], [[1, 0]], [[2, 1]]]])
    gather("one element of a vector", draw(4), 0, 2)
    gather("a scalar", draw(), -1, 0)
    gather("a scalar twice", draw(), 0, [0, 0])
    gather("no columns", draw(2, 3), 1, [[], []])

    def with_indices(values, indices):
        return values * (1 + indices)

    def max(name, x, axis, keep=False):
        add("max", name, [x], lambda a: with_indices(*a.max(axis, keep)))

    max("rows", draw(3, 4), 1)
    max("columns, kept", draw(3, 4), 0, True)
    max("a scalar", draw(), 0)
    max("a scalar, kept", draw(), -1, True)
    max("no columns, kept", draw(3, 0), 0, True)
    max("large", draw(2, 20, low=-1e30, high=1e30), 1)

    def topk(name, x, k, *options):
        add("topk", name, [x], lambda a: with_indices(*a.topk(k, *options)))

    topk("three of five columns", draw(2, 5), 3)
    topk("the smallest of a middle axis", draw(2, 4, 3), 2, -2, False)
    topk("all, in order", draw(7), 7)
    topk("none", draw(2, 3), 0)
    topk("a scalar", draw(), 1, 0)
    topk("large", draw(2, 20, low=-1e30, high=1e30), 4, 1)
