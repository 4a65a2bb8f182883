import torch
import torch.nn.functional as F

from table import add, draw


def add_samples():
    f = torch.matmul
    add("matmul", "vectors", [draw(3), draw(3)], f)
    add("matmul", "a matrix and a vector", [draw(2, 3), draw(3)], f)
    add("matmul", "a vector and a matrix", [draw(3), draw(3, 2)], f)
    add("matmul", "matrices", [draw(2, 3), draw(3, 4)], f)
    add("matmul", "a vector and a batch", [draw(3), draw(2, 3, 2)], f)
    add("matmul", "a vector with itself", [draw(3)], lambda a: a @ a)
    add("matmul", "large and tiny", [draw(2, 3, low=-1e6, high=1e6), draw(3, 2, low=-1e-6, high=1e-6)], f)
    add("matmul", "a matrix with itself", [draw(3, 3)], lambda a: a @ a)

    add("linear", "a vector", [draw(3), draw(2, 3), draw(2)], F.linear)
    add("linear", "no bias", [draw(2, 3), draw(4, 3)], F.linear)
    add("linear", "the input as its own weight", [draw(3, 2)], lambda a: F.linear(a, a))

    def einsum(name, *inputs):
        add("einsum", name, inputs, lambda *x: torch.einsum(name.split(": ")[-1], *x))

    einsum("ij,jk->ik", draw(2, 3), draw(3, 2))
    einsum("i j, j k -> k i", draw(2, 3), draw(3, 2))
    einsum("bqd,bkd->bqk", draw(2, 2, 3), draw(2, 4, 3))
    einsum("bhqk,bkhd->bqhd", draw(2, 2, 1, 3), draw(2, 3, 2, 2))
    einsum("i,j->ji", draw(2), draw(3))
    einsum("i,i->", draw(3), draw(3))
    einsum("bi,bi->b", draw(2, 3), draw(2, 3))
    einsum("Ij,Ij->Ij", draw(2, 3), draw(2, 3))
    einsum("letters of one operand alone: aij,jkc->k", draw(2, 2, 3), draw(3, 2, 2))
    einsum("a scalar: ij,->ji", draw(2, 3), draw())
    einsum("scalars: ,->", draw(), draw())
