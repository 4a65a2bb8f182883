#include "table.hpp"

namespace operations {
namespace {

void add_matmul(Table& table) {
  const auto f = [](auto& x) { return tg::matmul(x[0], x[1]); };
  table.add("matmul", "vectors", {"...n,n", draw({3}), draw({3})}, f);
  table.add("matmul", "a matrix and a vector", {draw({2, 3}), draw({3})}, f);
  table.add("matmul", "a vector and a matrix", {draw({3}), draw({3, 2})}, f);
  table.add("matmul", "matrices", {"...m?n,...n?p", draw({2, 3}), draw({3, 4})}, f);
  table.add("matmul", "a vector and a batch", {draw({3}), draw({2, 3, 2})}, f);
  table.add("matmul", "a vector with itself", {draw({3})}, [](auto& x) { return tg::matmul(x[0], x[0]); });
  table.add("matmul", "large and tiny", {draw({2, 3}, -1e6, 1e6), draw({3, 2}, -1e-6, 1e-6)}, f, 1e-3);
  table.add("matmul", "a matrix with itself", {draw({3, 3})}, [](auto& x) { return tg::matmul(x[0], x[0]); });
}

void add_linear(Table& table) {
  const auto f = [](auto& x) { return tg::linear(x[0], x[1], x[2]); };
  table.add("linear", "a vector", {"...n,pn,p", draw({3}), draw({2, 3}), draw({2})}, f);
  table.add("linear", "no bias", {"...m?n,pn", draw({2, 3}), draw({4, 3})},
            [](auto& x) { return tg::linear(x[0], x[1]); });
  table.add("linear", "the input as its own weight", {draw({3, 2})}, [](auto& x) { return tg::linear(x[0], x[0]); });
}

void add_einsum(Table& table) {
  table.add("einsum", "ij,jk->ik", {"ij,jk", draw({2, 3}), draw({3, 2})},
            [](auto& x) { return tg::einsum("ij,jk->ik", x[0], x[1]); });
  table.add("einsum", "i j, j k -> k i", {draw({2, 3}), draw({3, 2})},
            [](auto& x) { return tg::einsum("i j, j k -> k i", x[0], x[1]); });
  table.add("einsum", "bqd,bkd->bqk", {"1qd,1kd", draw({2, 2, 3}), draw({2, 4, 3})},
            [](auto& x) { return tg::einsum("bqd,bkd->bqk", x[0], x[1]); });
  table.add("einsum", "bhqk,bkhd->bqhd", {"1hqk,1khd", draw({2, 2, 1, 3}), draw({2, 3, 2, 2})},
            [](auto& x) { return tg::einsum("bhqk,bkhd->bqhd", x[0], x[1]); });
  table.add("einsum", "i,j->ji", {draw({2}), draw({3})}, [](auto& x) { return tg::einsum("i,j->ji", x[0], x[1]); });
  table.add("einsum", "i,i->", {"i,i", draw({3}), draw({3})}, [](auto& x) { return tg::einsum("i,i->", x[0], x[1]); });
  table.add("einsum", "bi,bi->b", {"1i,1i", draw({2, 3}), draw({2, 3})},
            [](auto& x) { return tg::einsum("bi,bi->b", x[0], x[1]); });
  table.add("einsum", "Ij,Ij->Ij", {draw({2, 3}), draw({2, 3})},
            [](auto& x) { return tg::einsum("Ij,Ij->Ij", x[0], x[1]); });
  table.add("einsum", "letters of one operand alone: aij,jkc->k", {"aij,jkc", draw({2, 2, 3}), draw({3, 2, 2})},
            [](auto& x) { return tg::einsum("aij,jkc->k", x[0], x[1]); });
  table.add("einsum", "a scalar: ij,->ji", {draw({2, 3}), draw({})},
            [](auto& x) { return tg::einsum("ij,->ji", x[0], x[1]); });
  table.add("einsum", "scalars: ,->", {draw({}), draw({})}, [](auto& x) { return tg::einsum(",->", x[0], x[1]); });
}

}  // namespace

void add_products(Table& table) {
  add_matmul(table);
  add_linear(table);
  add_einsum(table);
}

}  // namespace operations
