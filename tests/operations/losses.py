import torch
import torch.nn.functional as F

from table import add, draw, numbers


def add_samples():
    labels, some_ignored = torch.tensor([2, 0, 1, 2]), torch.tensor([2, -100, 1, -100])
    weights = torch.tensor([0.5, 2, 1.25], dtype=torch.double)

    def cross_entropy(name, y=labels, x=draw(4, 3, low=-2, high=2), **options):
        y = torch.as_tensor(y)
        classes_first = (lambda a: a.movedim(-1, 1)) if y.dim() > 1 else (lambda a: a)
        add("cross_entropy", name, [x], lambda a: F.cross_entropy(classes_first(a), y, **options))

    cross_entropy("mean")
    cross_entropy("sum", reduction="sum")
    cross_entropy("none", reduction="none")
    cross_entropy("one label", 1, draw(3, low=-2, high=2))
    cross_entropy("labels of two axes, none", [[2, 0], [1, 1]], draw(2, 2, 3, low=-2, high=2), reduction="none")
    cross_entropy("one class", [0, 0], draw(2, 1))
    cross_entropy("no labels, sum", torch.zeros(0, dtype=torch.long), draw(0, 3), reduction="sum")
    cross_entropy("no labels of two axes, none", torch.zeros(2, 0, dtype=torch.long), draw(2, 0, 3), reduction="none")
    cross_entropy("many classes", [13, 19], draw(2, 20, low=-2, high=2), label_smoothing=0.1)
    cross_entropy("large", x=draw(4, 3, low=-1e4, high=1e4))
    cross_entropy("around a large number", x=draw(4, 3, low=16383, high=16385))
    cross_entropy("tiny", x=draw(4, 3, low=-1e-8, high=1e-8))
    cross_entropy("labels ignored, mean", some_ignored)
    cross_entropy("labels ignored, none", some_ignored, reduction="none")
    cross_entropy("a class ignored", ignore_index=2)
    cross_entropy("smoothed", label_smoothing=0.1)
    cross_entropy("smoothed whole", label_smoothing=1.0)
    cross_entropy("smoothed, large", x=draw(4, 3, low=-1e4, high=1e4), label_smoothing=0.1)
    cross_entropy("weighted, mean", weight=weights)
    cross_entropy("weighted, sum", weight=weights, reduction="sum")
    cross_entropy("weighted, none", weight=weights, reduction="none")
    cross_entropy("everything, mean", some_ignored, label_smoothing=0.2, weight=weights)
    cross_entropy("everything, sum", ignore_index=0, label_smoothing=0.2, weight=weights, reduction="sum")
    cross_entropy("everything, none", some_ignored, label_smoothing=0.2, weight=weights, reduction="none")

    def mse(name, *inputs, **options):
        add("mse_loss", name, inputs, lambda a, b: F.mse_loss(a, b, **options))

    mse("mean", draw(2, 3), draw(2, 3))
    mse("sum", draw(2, 3), draw(2, 3), reduction="sum")
    mse("none", draw(2, 2, 2), draw(2, 2, 2), reduction="none")
    mse("scalars", draw(), draw())
    mse("one element", draw(1), draw(1))
    mse("no elements, sum", draw(0, 2), draw(0, 2), reduction="sum")
    target = 2 * numbers(draw(2, 3), 7)
    add("mse_loss", "a target that is an expression", [draw(2, 3)], lambda a: F.mse_loss(a, target))
    add("mse_loss", "a target that is an expression, sum", [draw(2, 3)],
        lambda a: F.mse_loss(a, target, reduction="sum"))
    add("mse_loss", "a tensor with itself", [draw(2, 3)], lambda a: F.mse_loss(a, a))
    add("mse_loss", "a matrix and its transpose", [draw(2, 2)], lambda a: F.mse_loss(a, a.T))
    mse("large", draw(2, 3, low=-1e4, high=1e4), draw(2, 3, low=-1e4, high=1e4))
    mse("tiny", draw(2, 3, low=-1e-8, high=1e-8), draw(2, 3, low=-1e-8, high=1e-8))
