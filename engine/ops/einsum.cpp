#include <string>

#include "../array/internal/layout.hpp"
#include "internal/matmul.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::require;

// The letters of an equation "ab,bc->ac".
struct Equation {
  std::string left, right, out;
};

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

Equation parse(std::string_view text) {
  const auto check = [&](bool holds, const char* what) {
    require(holds, "einsum", "expected ", what, ", got \"", text, '"');
  };
  std::string letters;
  for (char c : text)
    if (c != ' ') letters += c;
  const std::size_t comma = letters.find(','), arrow = letters.find("->");
  check(comma != std::string::npos && arrow != std::string::npos && comma < arrow,
        "an equation with two operands and an output, such as \"ij,jk->ik\"");
  Equation e{letters.substr(0, comma), letters.substr(comma + 1, arrow - comma - 1), letters.substr(arrow + 2)};
  for (const std::string* term : {&e.left, &e.right, &e.out})
    for (std::size_t i = 0; i < term->size(); ++i) {
      const char c = (*term)[i];
      check((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), "letters for axes");
      check(term->find(c, i + 1) == std::string::npos, "each letter at most once per operand and in the output");
    }
  for (char c : e.out) check(has(e.left, c) || has(e.right, c), "output letters that occur in an operand");
  return e;
}

// Sums over the axes with letters in neither `other` nor `out`, and removes these letters.
template <class T>
Tensor<T> sum_unshared_axes(const Tensor<T>& x, std::string& letters, const std::string& other,
                            const std::string& out) {
  std::vector<std::ptrdiff_t> axes;
  std::string kept;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (has(other, letters[i]) || has(out, letters[i]))
      kept += letters[i];
    else
      axes.push_back(static_cast<std::ptrdiff_t>(i));
  }
  letters = kept;
  return axes.empty() ? x : sum(x, axes);
}

// Permutes x's axes, named by `letters`, to the order of `wanted`.
template <class T> Tensor<T> ordered(const Tensor<T>& x, const std::string& letters, const std::string& wanted) {
  if (letters == wanted) return x;
  std::vector<std::size_t> axes;
  for (char c : wanted) axes.push_back(letters.find(c));
  return permute(x, axes);
}

// The extents of x's axes, named by `letters`, in the order of `wanted`.
Shape extents_of(const Shape& shape, const std::string& letters, const std::string& wanted) {
  Shape extents;
  for (char c : wanted) extents.push_back(shape[letters.find(c)]);
  return extents;
}

}  // namespace

// Every einsum of two operands is a batched matrix product between permutations. Letters in both operands and the
// output are batch axes; letters in one operand and the output are rows or columns; the product sums over the others.
template <class T> Tensor<T> einsum(std::string_view equation, const Tensor<T>& a, const Tensor<T>& b) {
  Equation e = parse(equation);
  require(e.left.size() == a.dimension() && e.right.size() == b.dimension(), "einsum", "expected operands with ",
          e.left.size(), " and ", e.right.size(), " axes for \"", equation, "\", got shapes ", a.shape(), " and ",
          b.shape());
  for (std::size_t i = 0; i < e.left.size(); ++i)
    if (const std::size_t j = e.right.find(e.left[i]); j != std::string::npos)
      require(a.shape()[i] == b.shape()[j], "einsum", "expected equal extents for axis '", e.left[i], "' in \"",
              equation, "\", got shapes ", a.shape(), " and ", b.shape());

  Shape result;
  for (char c : e.out) result.push_back(has(e.left, c) ? a.shape()[e.left.find(c)] : b.shape()[e.right.find(c)]);
  detail::require_addressable<T>("einsum", result);

  const Tensor<T> left = sum_unshared_axes(a, e.left, e.right, e.out),
                  right = sum_unshared_axes(b, e.right, e.left, e.out);
  std::string batch, rows, columns, summed;
  for (char c : e.left) (!has(e.right, c) ? rows : has(e.out, c) ? batch : summed) += c;
  for (char c : e.right)
    if (!has(e.left, c)) columns += c;
  const auto left_extents = [&](const std::string& letters) { return extents_of(left.shape(), e.left, letters); };
  const Shape column_extents = extents_of(right.shape(), e.right, columns);
  const std::size_t n = element_count(left_extents(batch)), k = element_count(left_extents(summed));

  const Tensor<T> product = detail::matmul_for(
      equation, reshape(ordered(left, e.left, batch + rows + summed), {n, element_count(left_extents(rows)), k}),
      reshape(ordered(right, e.right, batch + summed + columns), {n, k, element_count(column_extents)}));
  Shape out = left_extents(batch + rows);
  for (std::size_t extent : column_extents) out.push_back(extent);
  return ordered(reshape(product, out), batch + rows + columns, e.out);
}

#define INSTANTIATE(T) template Tensor<T> einsum(std::string_view, const Tensor<T>&, const Tensor<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
