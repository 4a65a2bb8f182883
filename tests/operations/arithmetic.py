import torch

from table import add, draw


def add_samples():
    def operator(operation, f):
        def second(*shape):
            return draw(*shape, low=0.5, high=2)

        add(operation, "a row and a column", [draw(3), second(2, 1)], f)
        add(operation, "scalars", [draw(), second()], f)
        add(operation, "a number on the right", [draw(2, 3)], lambda a: f(a, 2.5))
        add(operation, "a number on the left", [second(2, 3)], lambda a: f(2.5, a))

    operator("operator+", lambda a, b: a + b)
    operator("operator-", lambda a, b: a - b)
    operator("operator*", lambda a, b: a * b)
    operator("operator/", lambda a, b: a / b)
    add("operator+", "a tensor with itself", [draw(2, 3)], lambda a: a + a)
    add("operator-", "a tensor with itself", [draw(2, 3)], lambda a: a - a)
    add("operator*", "a tensor with itself", [draw(2, 3)], lambda a: a * a)
    add("operator/", "a tensor by itself", [draw(2, 3, low=0.5, high=2)], lambda a: a / a)

    def assignment(operation, f):
        def positive(*shape):
            return draw(*shape, low=0.5, high=2)

        add(operation, "a row to a matrix", [draw(2, 3), positive(3)], f)
        add(operation, "a matrix to a scalar", [draw(), positive(2, 3)], f)
        add(operation, "a number", [draw(2, 3)], lambda a: f(a, 2.5))
        add(operation, "an array", [draw(2, 3)], lambda a: f(a, torch.tensor([1.0, 2, 4], dtype=torch.double)))
        add(operation, "a tensor to itself, which others still see", [positive(2, 3)], lambda a: f(a, a) * a)

    assignment("operator+=", lambda a, b: a + b)
    assignment("operator-=", lambda a, b: a - b)
    assignment("operator*=", lambda a, b: a * b)
    assignment("operator/=", lambda a, b: a / b)

    add("operator-", "negated scalar", [draw()], lambda a: -a)

    add("pow", "squares", [draw(2, 3, low=-2, high=2)], lambda a: a**2)
    add("pow", "roots", [draw(3, low=0.1, high=4)], lambda a: a**0.5)
    add("pow", "a negative exponent", [draw(3, low=0.5, high=4)], lambda a: a**-1.5)
    add("pow", "reciprocals of both signs", [draw(4, gap=0.5)], lambda a: a**-1)
    add("pow", "exponent 1", [draw(3)], lambda a: a**1)
    add("pow", "exponent 0", [draw(3)], lambda a: a**0)
    add("pow", "tiny", [draw(3, low=1e-9, high=1e-8)], lambda a: a**0.5)
    add("pow", "large", [draw(3, low=1e9, high=1e10)], lambda a: a**1.5)
    add("pow", "zeros squared", [draw(2, low=0, high=0)], lambda a: a**2)
    add("pow", "a column of exponents and a row", [draw(3, low=0.5, high=2), draw(2, 1)], torch.pow)
    add("pow", "a number to many powers", [draw(2, 3)], lambda a: torch.pow(2.5, a))
    add("pow", "an array to many powers", [draw(3)], lambda a: torch.tensor([0.5, 1, 3], dtype=torch.double) ** a)
    add("pow", "an array of whole exponents, both signs", [draw(3, gap=0.5)], lambda a: a ** torch.tensor([2, 3, -1]))
    add("pow", "a tensor to itself", [draw(4, low=0.5, high=2)], lambda a: a**a)
    add("pow", "zeros to the power of a tensor", [draw(3, low=0, high=0), draw(3, low=1.5, high=2)], torch.pow)
