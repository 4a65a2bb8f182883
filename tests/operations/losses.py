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
    cross_entropy("no labels, sum", torch.zeros(0, dtype=torch.long), draw(0, 3), reduction="sum")
    cross_entropy("large", x=draw(4, 3, low=-1e4, high=1e4))
    cross_entropy("around a large number", x=draw(4, 3, low=16383, high=16385))
    cross_entropy("tiny", x=draw(4, 3, low=-1e-8, high=1e-8))
    cross_entropy("labels ignored, mean", some_ignored)
    cross_entropy("labels ignored, none", some_ignored, reduction="none")
    cross_entropy("a class ignored", ignore_index=2)
    cross_entropy("smoothed", label_smoothing=0.1)
    cross_entropy("smoothed whole", label_smoothing=1.0)
    cross_entropy("weighted, mean", weight=weights)
    cross_entropy("everything, mean", some_ignored, label_smoothing=0.2, weight=weights)
    cross_entropy("everything, sum", ignore_index=0, label_smoothing=0.2, weight=weights, reduction="sum")
    cross_entropy("everything, none", some_ignored, label_smoothing=0.2, weight=weights, reduction="none")

    def of_probabilities(name, *shape, low=-2, high=2, **options):
        classes_first = (lambda a: a.movedim(-1, 1)) if len(shape) > 2 else (lambda a: a)
        add("cross_entropy", f"probabilities, {name}", [draw(*shape, low=low, high=high), draw(*shape, low=0, high=1)],
            lambda a, b: F.cross_entropy(classes_first(a), classes_first(b), **options))

    of_probabilities("mean", 4, 3)
    of_probabilities("none", 4, 3, reduction="none")
    of_probabilities("three axes, mean", 2, 2, 3)
    of_probabilities("no rows, sum", 0, 3, reduction="sum")
    of_probabilities("large", 4, 3, low=-1e4, high=1e4)
    of_probabilities("smoothed", 4, 3, label_smoothing=0.1)
    of_probabilities("weighted, mean", 4, 3, weight=weights)
    of_probabilities("everything, sum", 4, 3, label_smoothing=0.2, weight=weights, reduction="sum")
    add("cross_entropy", "probabilities of the logits themselves", [draw(4, 3, low=-2, high=2)],
        lambda a: F.cross_entropy(a, a.softmax(-1)))
    fixed = numbers(draw(2, 3, low=0, high=1), 7)
    add("cross_entropy", "probabilities that are an array", [draw(2, 3)], lambda a: F.cross_entropy(a, fixed))

    def binary(name, *shape, low=-3, high=3, **options):
        add("binary_cross_entropy_with_logits", name, [draw(*shape, low=low, high=high), draw(*shape, low=0, high=1)],
            lambda a, b: F.binary_cross_entropy_with_logits(a, b, **options))

    row, column = numbers(draw(3, low=0.5, high=2), 7), numbers(draw(2, 1, low=0.5, high=2), 8)
    binary("mean", 2, 3)
    binary("sum", 2, 3, reduction="sum")
    binary("none", 2, 2, 2, reduction="none")
    binary("no elements, sum", 0, 2, reduction="sum")
    binary("large", 2, 3, low=-1e4, high=1e4)
    binary("tiny", 2, 3, low=-1e-8, high=1e-8)
    binary("weighted", 2, 3, weight=row)
    binary("positives weighted", 2, 3, pos_weight=row)
    binary("everything, sum", 2, 3, weight=column, pos_weight=row, reduction="sum")
    add("binary_cross_entropy_with_logits", "a tensor with itself", [draw(3)],
        lambda a: F.binary_cross_entropy_with_logits(a, a))

    def mse(name, *inputs, **options):
        add("mse_loss", name, inputs, lambda a, b: F.mse_loss(a, b, **options))

    mse("mean", draw(2, 3), draw(2, 3))
    mse("sum", draw(2, 3), draw(2, 3), reduction="sum")
    mse("none", draw(2, 2, 2), draw(2, 2, 2), reduction="none")
    mse("no elements, sum", draw(0, 2), draw(0, 2), reduction="sum")
    target = 2 * numbers(draw(2, 3), 7)
    add("mse_loss", "a target that is an expression", [draw(2, 3)], lambda a: F.mse_loss(a, target))
    add("mse_loss", "a tensor with itself", [draw(2, 3)], lambda a: F.mse_loss(a, a))
    mse("large", draw(2, 3, low=-1e4, high=1e4), draw(2, 3, low=-1e4, high=1e4))
    mse("tiny", draw(2, 3, low=-1e-8, high=1e-8), draw(2, 3, low=-1e-8, high=1e-8))
