#include <limits>

#include "table.hpp"

namespace operations {
namespace {

// An elementwise function on all shapes of a tensor; low and high bound its inputs.
template <class F> void add_function(Table& table, const char* operation, double low, double high, double gap, F f) {
  table.add(operation, "a matrix", {draw({2, 3}, low, high, gap)}, f);
  table.add(operation, "a scalar", {"...", draw({}, low, high, gap)}, f);
}

// A function that is smooth everywhere.
template <class F> void add_smooth_function(Table& table, const char* operation, double bound, F f) {
  add_function(table, operation, -bound, bound, 0, f);
  table.add(operation, "large", {draw({8}, -1e4, 1e4)}, f);
  table.add(operation, "tiny", {draw({4}, -1e-9, 1e-9)}, f);
}

// The larger or the smaller of two tensors. Equal numbers have no derivative: each gets half of the gradient.
template <class F> void add_winner(Table& table, const char* operation, F) {
  const auto f = [](auto& x) { return F()(x[0], x[1]); };
  table.add(operation, "a row and a column", {draw({3}), draw({2, 1})}, f);
  table.add(operation, "scalars", {"...,...", draw({}), draw({})}, f);
  table.add(operation, "a tensor with itself", {draw({2, 3})}, [](auto& x) { return F()(x[0], x[0]); });
  table.add(operation, "a matrix and its transpose", {draw({3, 3})},
            [](auto& x) { return F()(x[0], tg::transpose(x[0], 0, 1)); });
  table.add(operation, "large and tiny", {draw({2, 3}, -1e30, 1e30), draw({3}, -1e-9, 1e-9)}, f);
  table.add(operation, "equal numbers", {draw({2, 3}, 0, 0), draw({3}, 0, 0)}, f, no_differences);
}

void add_functions(Table& table) {
  const auto exp = [](auto& x) { return tg::exp(x[0]); };
  add_function(table, "exp", -3, 3, 0, exp);
  table.add("exp", "large", {draw({4}, 20, 21)}, exp, 1e-7);
  table.add("exp", "tiny", {draw({4}, -1e-6, 1e-6)}, exp);
  table.add("exp", "very negative", {draw({4}, -1e4, -1e3)}, exp);

  const auto log = [](auto& x) { return tg::log(x[0]); };
  add_function(table, "log", 0.2, 5, 0, log);
  table.add("log", "large", {draw({4}, 1e29, 1e30)}, log);
  table.add("log", "tiny", {draw({4}, 1e-30, 1e-29)}, log, 1e-36);

  const auto sqrt = [](auto& x) { return tg::sqrt(x[0]); };
  add_function(table, "sqrt", 0.2, 5, 0, sqrt);
  table.add("sqrt", "large", {draw({4}, 1e29, 1e30)}, sqrt);
  table.add("sqrt", "tiny", {draw({4}, 1e-12, 1e-11)}, sqrt, 1e-17);

  const auto abs = [](auto& x) { return tg::abs(x[0]); };
  add_function(table, "abs", -1, 1, 0.1, abs);
  table.add("abs", "large", {draw({4}, -1e30, 1e30)}, abs);
  table.add("abs", "tiny", {draw({4}, -1e-9, 1e-9, 1e-9)}, abs, 1e-10);

  add_smooth_function(table, "tanh", 2, [](auto& x) { return tg::tanh(x[0]); });
  add_smooth_function(table, "sigmoid", 4, [](auto& x) { return tg::sigmoid(x[0]); });
  add_smooth_function(table, "silu", 4, [](auto& x) { return tg::silu(x[0]); });

  const auto relu = [](auto& x) { return tg::relu(x[0]); };
  add_function(table, "relu", -1, 1, 0.1, relu);
  table.add("relu", "large", {draw({4}, -1e30, 1e30)}, relu);
  table.add("relu", "tiny", {draw({4}, -1e-9, 1e-9, 1e-9)}, relu, 1e-10);

  add_function(table, "clamp", -2, 2, 0, [](auto& x) { return tg::clamp(x[0], -0.5, 0.75); });
  table.add("clamp", "from below", {"...a?b?", draw({2, 3})}, [](auto& x) { return tg::clamp(x[0], -0.25); });
  table.add("clamp", "from above", {draw({2, 3})}, [](auto& x) { return tg::clamp(x[0], {}, 0.25); });
  table.add("clamp", "to bounds that cross", {draw({2, 3})}, [](auto& x) { return tg::clamp(x[0], 0.5, -0.5); });
  table.add("clamp", "large", {draw({8}, -1e30, 1e30)}, [](auto& x) { return tg::clamp(x[0], -5e29, 5e29); });

  add_smooth_function(table, "softplus", 3, [](auto& x) { return tg::softplus(x[0]); });
  table.add("softplus", "beta and threshold", {"...a?", draw({8}, -10, 10)},
            [](auto& x) { return tg::softplus(x[0], 2, 5); });
  table.add("softplus", "a negative beta", {draw({8}, -4, 4)}, [](auto& x) { return tg::softplus(x[0], -0.5); });

  add_smooth_function(table, "gelu", 3, [](auto& x) { return tg::gelu(x[0]); });

  const auto tanh_gelu = [](auto& x) { return tg::gelu(x[0], tg::Gelu::tanh); };
  table.add("gelu", "by tanh", {draw({2, 3}, -3, 3)}, tanh_gelu);
  table.add("gelu", "by tanh, a scalar", {"...", draw({}, -3, 3)}, tanh_gelu);
  table.add("gelu", "by tanh, tiny", {draw({4}, -1e-9, 1e-9)}, tanh_gelu);
  table.add("gelu", "by tanh, large", {draw({8}, -1e4, 1e4)}, tanh_gelu);
}

void add_choices(Table& table) {
  table.add("masked_fill", "a mask of one row", {"...a?N", draw({2, 3})}, [](auto& x) {
    return tg::masked_fill(x[0], tg::BoolArray{true, false, true}, 0.5);
  });
  table.add("masked_fill", "a mask of one column", {draw({2, 3})}, [](auto& x) {
    return tg::masked_fill(x[0], drawn_mask({2, 1}, 8), 0.5);
  });
  table.add("masked_fill", "a causal mask of four axes", {draw({2, 2, 3, 3})},
            [](auto& x) { return tg::masked_fill(x[0], tg::causal_mask(3, 3), 2); });
  table.add("masked_fill", "a scalar, filled", {draw({})},
            [](auto& x) { return tg::masked_fill(x[0], drawn_mask({}, 7), 1); });
  table.add("masked_fill", "-inf before a softmax", {draw({2, 4})}, [](auto& x) {
    const auto hidden =
        tg::masked_fill(x[0], tg::BoolArray{true, false, false, true}, -std::numeric_limits<double>::infinity());
    return tg::softmax(hidden, -1);
  });

  const auto row = [](auto& x) { return tg::masked_fill(x[0], tg::BoolArray{true, false, true}, x[1]); };
  table.add("masked_fill", "a tensor's value in rows", {"...a?N,", draw({2, 3}), draw({})}, row);
  table.add("masked_fill", "a tensor's value in a scalar", {draw({}), draw({})},
            [](auto& x) { return tg::masked_fill(x[0], drawn_mask({}, 7), x[1]); });

  table.add("where", "equal shapes", {"...A?B?,...A?B?", draw({2, 3}), draw({2, 3})}, [](auto& x) {
    return tg::where(drawn_mask({2, 3}, 7), x[0], x[1]);
  });
  table.add("where", "all three broadcast", {draw({3}), draw({2, 1, 1})}, [](auto& x) {
    return tg::where(drawn_mask({2, 1}, 7), x[0], x[1]);
  });
  table.add("where", "scalars chosen by a matrix", {draw({}), draw({})}, [](auto& x) {
    return tg::where(drawn_mask({2, 3}, 7), x[0], x[1]);
  });

  add_winner(table, "maximum", [](const auto& a, const auto& b) { return tg::maximum(a, b); });
  add_winner(table, "minimum", [](const auto& a, const auto& b) { return tg::minimum(a, b); });

  table.add("dropout", "half of a matrix", {draw({4, 5})}, [](auto& x) { return tg::dropout(x[0], 0.5); });
  table.add("dropout", "a tenth of three axes", {draw({2, 3, 4})}, [](auto& x) { return tg::dropout(x[0], 0.1); });
  table.add("dropout", "twice, with other masks", {draw({12})},
            [](auto& x) { return tg::dropout(x[0], 0.5) + tg::dropout(x[0], 0.5); });
  table.add("dropout", "probability 0", {"...a?b?", draw({2, 3})}, [](auto& x) { return x[0] * tg::dropout(x[0], 0); });
  table.add("dropout", "not training", {draw({2, 3})}, [](auto& x) { return x[0] * tg::dropout(x[0], 0.5, false); });
}

}  // namespace

void add_elementwise(Table& table) {
  add_functions(table);
  add_choices(table);
}

}  // namespace operations
