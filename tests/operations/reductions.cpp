#include "table.hpp"

namespace operations {
namespace {

// A reduction over various axes and shapes, with and without keepdims.
template <class F> void add_reduction(Table& table, const char* operation, F) {
  const auto all = [](auto& x) { return F()(x[0], {}, tg::KeepDims::no); };
  table.add(operation, "all of a matrix", {draw({2, 3})}, all);
  table.add(operation, "all, kept", {draw({2, 3})}, [](auto& x) { return F()(x[0], {}, tg::keepdims); });
  table.derive(operation, "along an axis", {draw({4})}, "n?",
               [](auto& x, std::ptrdiff_t axis) { return F()(x[0], axis, tg::KeepDims::no); });
  table.derive(operation, "along an axis, kept", {draw({4})}, "n?",
               [](auto& x, std::ptrdiff_t axis) { return F()(x[0], axis, tg::keepdims); });
  table.add(operation, "the outer axes of three", {draw({2, 3, 2})}, [](auto& x) {
    return F()(x[0], {0, -1}, tg::KeepDims::no);
  });
  table.add(operation, "the middle axes of four, kept", {draw({2, 2, 3, 2})}, [](auto& x) {
    return F()(x[0], {2, 1}, tg::keepdims);
  });
}

// For reductions that do not square their inputs.
template <class F> void add_extremes(Table& table, const char* operation, F) {
  const auto all = [](auto& x) { return F()(x[0], {}, tg::KeepDims::no); };
  table.add(operation, "large", {draw({2, 3}, 1e29, 1e30)}, all);
  table.add(operation, "tiny", {draw({2, 3}, 1e-30, 1e-29)}, all, 1e-36);
}

void add_var(Table& table) {
  add_reduction(table, "var",
                [](auto& x, const tg::Axes& axes, tg::KeepDims keep) { return tg::var(x, axes, 0, keep); });
  const auto all = [](auto& x) { return tg::var(x[0]); };
  const auto rows = [](auto& x) { return tg::var(x[0], 1); };
  table.add("var", "large", {draw({2, 3}, 1e9, 1e10)}, all);
  table.add("var", "tiny", {draw({2, 3}, 1e-8, 1e-7)}, all, 1e-9);
  table.add("var", "around a large number", {draw({2, 4}, 1023, 1025)}, rows);
  table.add("var", "corrected", {draw({2, 4})}, rows);
  table.add("var", "corrected by 2, kept", {draw({2, 4})}, [](auto& x) { return tg::var(x[0], 1, 2, tg::keepdims); });
  table.add("var", "equal elements", {draw({3, 1})}, [](auto& x) { return tg::var(tg::expand(x[0], {3, 4}), 1); });
}

// An operation on the rows along an axis.
template <class F> void add_row_function(Table& table, const char* operation, F) {
  const auto last = [](auto& x) { return F()(x[0], -1); };
  const auto first = [](auto& x) { return F()(x[0], 0); };
  table.add(operation, "the last axis of a matrix", {draw({2, 3}, -2, 2)}, last);
  table.add(operation, "a vector", {draw({4}, -2, 2)}, first).along("n?", [](auto& x, std::ptrdiff_t axis) {
    return F()(x[0], axis);
  });
  table.add(operation, "large", {draw({2, 4}, -1e4, 1e4)}, last);
  table.add(operation, "around a large number", {draw({2, 4}, 16383, 16385)}, last, 1e-8);
  table.add(operation, "tiny", {draw({2, 4}, -1e-8, 1e-8)}, last);
}

void add_layer_norm(Table& table) {
  const auto f = [](auto& x) { return tg::layer_norm(x[0], x[1], x[2]); };
  table.add("layer_norm", "a vector", {"...n,n,n", draw({4}), draw({4}), draw({4})}, f);
  table.add("layer_norm", "over the last two axes", {"...a?mn,mn,mn", draw({2, 2, 3}), draw({2, 3}), draw({2, 3})}, f);
  table.add("layer_norm", "large", {draw({2, 4}, -1e4, 1e4), draw({4}), draw({4})}, f);
  table.add("layer_norm", "around a large number", {draw({2, 4}, 63, 65), draw({4}), draw({4})}, f);
  table.add("layer_norm", "tiny", {draw({2, 4}, -1e-4, 1e-4), draw({4}), draw({4})}, f, 1e-8);
  table.add("layer_norm", "no weight and no bias", {"...a?n", draw({2, 4})},
            [](auto& x) { return tg::layer_norm(x[0], {}, {}); });
  table.add("layer_norm", "no bias", {draw({2, 4}), draw({4})}, [](auto& x) { return tg::layer_norm(x[0], x[1], {}); });
  table.add("layer_norm", "no weight", {draw({2, 4}), draw({4})},
            [](auto& x) { return tg::layer_norm(x[0], {}, x[1]); });
  table.add("layer_norm", "another eps", {draw({2, 4}), draw({4}), draw({4})},
            [](auto& x) { return tg::layer_norm(x[0], x[1], x[2], 0.5); });
}

void add_rms_norm(Table& table) {
  const auto f = [](auto& x) { return tg::rms_norm(x[0], x[1]); };
  table.add("rms_norm", "a vector", {"...n,n", draw({4}), draw({4})}, f);
  table.add("rms_norm", "over the last two axes", {draw({2, 2, 3}), draw({2, 3})}, f);
  table.derive("rms_norm", "over both axes", {"...mn,m?n", draw({2, 3}), draw({2, 3})}, f);
  table.add("rms_norm", "large", {draw({2, 4}, -1e4, 1e4), draw({4})}, f);
  table.add("rms_norm", "around a large number", {draw({2, 4}, 63, 65), draw({4})}, f);
  table.add("rms_norm", "tiny", {draw({2, 4}, -1e-4, 1e-4), draw({4})}, f, 1e-8);
  table.add("rms_norm", "another eps", {draw({2, 4}), draw({4})},
            [](auto& x) { return tg::rms_norm(x[0], x[1], 0.5); });
  table.add("rms_norm", "no weight", {draw({2, 2, 4})}, [](auto& x) { return tg::rms_norm(x[0]); });
  table.add("rms_norm", "a vector also as weight", {draw({4})}, [](auto& x) { return tg::rms_norm(x[0], x[0]); });
}

void add_embedding(Table& table) {
  table.add("embedding", "ids of two axes, some twice", {"Rd", draw({4, 3})}, [](auto& x) {
    return tg::embedding(x[0], tg::IntArray{{3, 0, 3}, {1, 3, 0}});
  });
  table.add("embedding", "no ids", {draw({4, 3})}, [](auto& x) {
    return tg::embedding(x[0], tg::IntArray::from_shape({2, 0}));
  });
  table.add(
      "embedding", "padding", {draw({4, 2})},
      [](auto& x) {
        return tg::embedding(x[0], tg::IntArray{{3, 0, 0}, {1, 0, 3}}, 0);
      },
      no_differences);
}

}  // namespace

void add_reductions(Table& table) {
  const auto sum = [](auto& x, const tg::Axes& axes, tg::KeepDims keep) { return tg::sum(x, axes, keep); };
  const auto mean = [](auto& x, const tg::Axes& axes, tg::KeepDims keep) { return tg::mean(x, axes, keep); };
  const auto amax = [](auto& x, const tg::Axes& axes, tg::KeepDims keep) { return tg::amax(x, axes, keep); };
  add_reduction(table, "sum", sum);
  add_reduction(table, "mean", mean);
  add_reduction(table, "amax", amax);
  add_extremes(table, "sum", sum);
  add_extremes(table, "mean", mean);
  add_extremes(table, "amax", amax);
  add_var(table);
  table.add("sum", "of nothing", {draw({0, 2})}, [](auto& x) { return tg::sum(x[0]); });
  table.add("amax", "the largest of every row twice", {draw({2, 3})}, [](auto& x) {
    return tg::amax(tg::cat({x[0], x[0]}, 1), 1);
  });

  add_row_function(table, "softmax", [](auto& x, std::ptrdiff_t axis) { return tg::softmax(x, axis); });
  add_row_function(table, "log_softmax", [](auto& x, std::ptrdiff_t axis) { return tg::log_softmax(x, axis); });
  add_layer_norm(table);
  add_rms_norm(table);
  add_embedding(table);
}

}  // namespace operations
