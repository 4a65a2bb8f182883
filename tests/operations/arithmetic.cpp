#include <functional>

#include "table.hpp"

namespace operations {
namespace {

// An operator on tensors that broadcast in every way, and with a number on either side.
template <class Operator> void add_operator(Table& table, const char* operation) {
  const auto f = [](auto& x) { return Operator()(x[0], x[1]); };
  table.add(operation, "a row and a column", {draw({3}), draw({2, 1}, 0.5, 2)}, f);
  table.add(operation, "scalars", {"...,...", draw({}), draw({}, 0.5, 2)}, f);
  table.add(operation, "a number on the right", {"...a?b?", draw({2, 3})},
            [](auto& x) { return Operator()(x[0], 2.5); });
  table.add(operation, "a number on the left", {"...a?b?", draw({2, 3}, 0.5, 2)},
            [](auto& x) { return Operator()(2.5, x[0]); });
}

// A compound assignment to a copy of the first input's handle, made by the call.
template <class Assign> void add_assignment(Table& table, const char* operation, Assign) {
  const auto f = [](auto& x) { return Assign()(x[0], x[1]); };
  table.add(operation, "a row to a matrix", {draw({2, 3}), draw({3}, 0.5, 2)}, f);
  table.derive(operation, "scalars", {"...,...", draw({}), draw({}, 0.5, 2)}, f);
  table.add(operation, "a matrix to a scalar", {draw({}), draw({2, 3}, 0.5, 2)}, f);
  table.add(operation, "a number", {draw({2, 3})}, [](auto& x) { return Assign()(x[0], 2.5); });
  table.add(operation, "an array", {draw({2, 3})}, [](auto& x) { return Assign()(x[0], tg::Array<double>{1, 2, 4}); });
  table.add(operation, "a tensor to itself, which others still see", {draw({2, 3}, 0.5, 2)},
            [](auto& x) { return Assign()(x[0], x[0]) * x[0]; });
}

void add_tensor_powers(Table& table) {
  const auto pow = [](auto& x) { return tg::pow(x[0], x[1]); };
  table.derive("pow", "scalars", {"...,...", draw({}, 0.5, 3), draw({}, -2, 2)}, pow);
  table.add("pow", "a column of exponents and a row", {draw({3}, 0.5, 2), draw({2, 1})}, pow);
  table.add("pow", "a number to many powers", {"...a?b?", draw({2, 3})}, [](auto& x) { return tg::pow(2.5, x[0]); });
  table.add("pow", "an array to many powers", {draw({3})}, [](auto& x) {
    return tg::pow(tg::Array<double>{0.5, 1, 3}, x[0]);
  });
  table.add("pow", "an array of whole exponents, both signs", {draw({3}, -1, 1, 0.5)}, [](auto& x) {
    return tg::pow(x[0], tg::Array<double>{2, 3, -1});
  });
  table.add("pow", "a tensor to itself", {draw({4}, 0.5, 2)}, [](auto& x) { return tg::pow(x[0], x[0]); });
  table.add("pow", "zeros to the power of a tensor", {draw({3}, 0, 0), draw({3}, 1.5, 2)}, pow, no_differences);
}

}  // namespace

void add_arithmetic(Table& table) {
  add_operator<std::plus<>>(table, "operator+");
  add_operator<std::minus<>>(table, "operator-");
  add_operator<std::multiplies<>>(table, "operator*");
  add_operator<std::divides<>>(table, "operator/");
  add_assignment(table, "operator+=", [](auto x, const auto& y) { return x += y; });
  add_assignment(table, "operator-=", [](auto x, const auto& y) { return x -= y; });
  add_assignment(table, "operator*=", [](auto x, const auto& y) { return x *= y; });
  add_assignment(table, "operator/=", [](auto x, const auto& y) { return x /= y; });

  table.add("operator+", "a tensor with itself", {draw({2, 3})}, [](auto& x) { return x[0] + x[0]; });
  table.add("operator-", "a tensor with itself", {draw({2, 3})}, [](auto& x) { return x[0] - x[0]; });
  table.add("operator*", "a tensor with itself", {draw({2, 3})}, [](auto& x) { return x[0] * x[0]; });
  table.add("operator/", "a tensor by itself", {draw({2, 3}, 0.5, 2)}, [](auto& x) { return x[0] / x[0]; });

  const auto negated = [](auto& x) { return -x[0]; };
  table.add("operator-", "negated scalar", {"...", draw({})}, negated);

  table.add("pow", "squares", {"...a?b?", draw({2, 3}, -2, 2)}, [](auto& x) { return tg::pow(x[0], 2); });
  table.add("pow", "roots", {draw({3}, 0.1, 4)}, [](auto& x) { return tg::pow(x[0], 0.5); });
  table.add("pow", "a negative exponent", {draw({3}, 0.5, 4)}, [](auto& x) { return tg::pow(x[0], -1.5); });
  table.add("pow", "reciprocals of both signs", {draw({4}, -1, 1, 0.5)}, [](auto& x) { return tg::pow(x[0], -1); });
  table.add("pow", "exponent 1", {draw({3})}, [](auto& x) { return tg::pow(x[0], 1); });
  table.add("pow", "exponent 0", {draw({3})}, [](auto& x) { return tg::pow(x[0], 0); });
  table.add(
      "pow", "tiny", {draw({3}, 1e-9, 1e-8)}, [](auto& x) { return tg::pow(x[0], 0.5); }, 1e-14);
  table.add("pow", "large", {draw({3}, 1e9, 1e10)}, [](auto& x) { return tg::pow(x[0], 1.5); });
  table.add("pow", "zeros squared", {draw({2}, 0, 0)}, [](auto& x) { return tg::pow(x[0], 2); });
  add_tensor_powers(table);
}

}  // namespace operations
