#include "table.hpp"

namespace operations {
namespace {

void add_axes(Table& table) {
  table.add("transpose", "the outer axes of three", {draw({2, 3, 4})},
            [](auto& x) { return tg::transpose(x[0], 0, -1); });
  table.add("transpose", "the middle axes of four", {draw({2, 3, 2, 2})},
            [](auto& x) { return tg::transpose(x[0], 1, 2); });
  table.add("transpose", "an axis with itself", {draw({2, 3})}, [](auto& x) { return tg::transpose(x[0], -1, 1); });

  table.add("transpose", "a scalar", {draw({})}, [](auto& x) { return tg::transpose(x[0], 0, -1); });
  table.add("squeeze", "a scalar along its axis", {draw({})}, [](auto& x) { return tg::squeeze(x[0], -1); });

  table.add("permute", "three axes", {draw({2, 3, 4})}, [](auto& x) { return tg::permute(x[0], {2, 0, 1}); });
  table.add("permute", "negative axes of four", {draw({2, 1, 3, 2})}, [](auto& x) {
    return tg::permute(x[0], {-1, 0, -2, 1});
  });
  table.add("permute", "a scalar", {draw({})}, [](auto& x) { return tg::permute(x[0], {}); });

  table.add("unsqueeze", "before the first axis", {draw({2, 3})}, [](auto& x) { return tg::unsqueeze(x[0], 0); });
  table.add("unsqueeze", "after the last axis", {draw({2, 3})}, [](auto& x) { return tg::unsqueeze(x[0], -1); });
  table.derive("unsqueeze", "along an axis", {draw({})}, "",
               [](auto& x, std::ptrdiff_t axis) { return tg::unsqueeze(x[0], axis); });
  table.derive("squeeze", "along an axis", {draw({1})}, "N?",
               [](auto& x, std::ptrdiff_t axis) { return tg::squeeze(x[0], axis); });
  table.derive("squeeze", "along an axis that stays", {draw({3})}, "n?",
               [](auto& x, std::ptrdiff_t axis) { return tg::squeeze(x[0], axis); });
  table.derive("transpose", "matrices", {"...ab", draw({2, 3})}, [](auto& x) { return tg::transpose(x[0], -1, -2); });

  table.add("squeeze", "all axes of extent 1", {draw({1, 2, 1, 3})}, [](auto& x) { return tg::squeeze(x[0]); });
  table.add("squeeze", "one axis", {draw({1, 2, 1})}, [](auto& x) { return tg::squeeze(x[0], -1); });
  table.add("squeeze", "a scalar", {draw({})}, [](auto& x) { return tg::squeeze(x[0]); });

  table.add("reshape", "two axes for three", {draw({2, 3, 2})}, [](auto& x) { return tg::reshape(x[0], {4, 3}); });
  table.add("reshape", "an extent worked out", {draw({2, 3, 2})}, [](auto& x) { return tg::reshape(x[0], {3, -1}); });
  table.add("reshape", "one element to a scalar", {draw({1, 1})}, [](auto& x) { return tg::reshape(x[0], {}); });
  table.add("reshape", "a scalar to axes", {draw({})}, [](auto& x) { return tg::reshape(x[0], {1, -1}); });
  table.add("reshape", "no elements", {draw({0, 3})}, [](auto& x) { return tg::reshape(x[0], {2, 0}); });
}

void add_copies(Table& table) {
  table.add("expand", "a row to a matrix", {draw({3})}, [](auto& x) { return tg::expand(x[0], {2, 3}); });
  table.add("expand", "a column, keeping its rows", {draw({2, 1})}, [](auto& x) { return tg::expand(x[0], {-1, 3}); });
  table.add("expand", "the middle axis", {draw({2, 1, 3})}, [](auto& x) { return tg::expand(x[0], {2, 2, 3}); });
  table.add("expand", "new rows, keeping the others", {draw({2, 1})}, [](auto& x) {
    return tg::expand(x[0], {3, -1, 4});
  });
  table.add("expand", "a scalar", {draw({})}, [](auto& x) { return tg::expand(x[0], {2, 2}); });
  table.add("expand", "to no rows", {draw({1, 3})}, [](auto& x) { return tg::expand(x[0], {0, 3}); });
  table.add("expand", "no rows to three columns", {draw({0, 1})}, [](auto& x) { return tg::expand(x[0], {-1, 3}); });
  table.add("expand", "to its own shape", {draw({2, 3})}, [](auto& x) { return tg::expand(x[0], {-1, 3}); });

  table.add("repeat", "a row", {draw({3})}, [](auto& x) { return tg::repeat(x[0], 2); });
  table.derive("repeat", "the last axis", {"...a?b", draw({2, 3})}, [](auto& x) {
    std::vector<std::size_t> counts(x[0].dimension(), 1);
    counts.back() = 2;
    return tg::repeat(x[0], counts);
  });
  table.add("repeat", "both axes", {draw({2, 3})}, [](auto& x) { return tg::repeat(x[0], {3, 2}); });
  table.add("repeat", "with axes in front", {draw({3})}, [](auto& x) { return tg::repeat(x[0], {2, 1, 2}); });
  table.add("repeat", "no copies", {draw({2, 3})}, [](auto& x) { return tg::repeat(x[0], {0, 1}); });
  table.add("repeat", "a scalar", {draw({})}, [](auto& x) { return tg::repeat(x[0], {2, 3}); });

  table.add("repeat_interleave", "rows", {draw({2, 3})}, [](auto& x) { return tg::repeat_interleave(x[0], 2, 0); });
  table.derive("repeat_interleave", "along an axis", {draw({3})}, "n",
               [](auto& x, std::ptrdiff_t axis) { return tg::repeat_interleave(x[0], 2, axis); });
  table.add("repeat_interleave", "no copies", {draw({2, 3})},
            [](auto& x) { return tg::repeat_interleave(x[0], 0, 1); });
}

void add_parts(Table& table) {
  table.add("select", "a row", {draw({2, 3})}, [](auto& x) { return tg::select(x[0], 0, 1); });
  table.add("select", "the last of a middle axis", {draw({2, 3, 2})}, [](auto& x) { return tg::select(x[0], 1, -1); });
  table.derive("select", "along an axis", {draw({4})}, "n", [](auto& x, std::ptrdiff_t axis) {
    const tg::Shape& shape = x[0].shape();
    const std::size_t at = static_cast<std::size_t>(axis) + (axis < 0 ? shape.size() : 0);
    const auto n = static_cast<std::ptrdiff_t>(at < shape.size() ? shape[at] : 1);
    return tg::select(x[0], axis, -n) + 2 * tg::select(x[0], axis, n - 1);
  });
  table.derive("narrow", "along an axis", {draw({5})}, "n",
               [](auto& x, std::ptrdiff_t axis) { return tg::narrow(x[0], axis, 1, 3); });
  table.derive("split", "along an axis", {draw({5})}, "n", [](auto& x, std::ptrdiff_t axis) {
    const auto pieces = tg::split(x[0], 2, axis);
    return tg::cat({pieces.back(), pieces[0], pieces[0]}, axis);
  });
  table.derive("roll", "along an axis", {draw({5})}, "n",
               [](auto& x, std::ptrdiff_t axis) { return 2 * tg::roll(x[0], 2, axis); });

  table.add("narrow", "columns", {draw({2, 4})}, [](auto& x) { return tg::narrow(x[0], 1, 1, 2); });
  table.add("narrow", "from the end", {draw({4, 2})}, [](auto& x) { return tg::narrow(x[0], 0, -3, 2); });
  table.add("narrow", "nothing", {draw({2, 3})}, [](auto& x) { return tg::narrow(x[0], 1, 3, 0); });

  table.add("split", "one piece alone", {draw({4, 2})}, [](auto& x) { return tg::split(x[0], 2)[1]; });

  table.add("roll", "forwards along an axis", {draw({2, 4})}, [](auto& x) { return tg::roll(x[0], 1, 1); });
  table.add("roll", "backwards along the first axis", {draw({3, 2})}, [](auto& x) { return tg::roll(x[0], -1, -2); });
  table.add("roll", "by nothing", {draw({3})}, [](auto& x) { return tg::roll(x[0], 0, 0); });
  table.add("roll", "flattened", {draw({2, 3})}, [](auto& x) { return tg::roll(x[0], 2); });
  table.add("roll", "flattened, backwards", {draw({2, 2, 2})}, [](auto& x) { return tg::roll(x[0], -3); });
  table.add("roll", "flattened, a scalar", {draw({})}, [](auto& x) { return tg::roll(x[0], 1); });

  table.add("tril", "a wide matrix", {"...mn", draw({2, 4})}, [](auto& x) { return tg::tril(x[0]); });
  table.add("tril", "a tall batch, diagonal -1", {draw({2, 3, 2})}, [](auto& x) { return tg::tril(x[0], -1); });
  table.add("triu", "a tall batch, diagonal -1", {draw({2, 3, 2})}, [](auto& x) { return tg::triu(x[0], -1); });
  table.add("triu", "diagonal 1", {"...mn", draw({3, 3})}, [](auto& x) { return tg::triu(x[0], 1); });
  table.add("tril", "four axes, a diagonal outside", {draw({1, 2, 2, 3})}, [](auto& x) { return tg::tril(x[0], -9); });
  table.add("triu", "four axes, a diagonal outside", {draw({1, 2, 2, 3})}, [](auto& x) { return tg::triu(x[0], -9); });
}

void add_joins(Table& table) {
  table.add("cat", "rows of different counts", {draw({2, 3}), draw({1, 3})}, [](auto& x) {
    return tg::cat({x[0], x[1]});
  });
  table.derive("cat", "along an axis", {draw({2}), draw({3})}, "n,m", [](auto& x, std::ptrdiff_t axis) {
    return tg::cat({x[1], x[0], x[1]}, axis);
  });
  table.derive("stack", "along an axis", {draw({}), draw({})}, ",", [](auto& x, std::ptrdiff_t axis) {
    return tg::stack({x[1], x[0], x[1]}, axis);
  });
  table.add("cat", "one that is empty", {draw({2, 2}), draw({0, 2})}, [](auto& x) { return tg::cat({x[1], x[0]}); });
  table.add("cat", "one alone, given as a span", {draw({2, 2})}, [](auto& x) { return tg::cat(std::span(x)); });

  table.add("stack", "a new first axis", {draw({2, 3}), draw({2, 3})}, [](auto& x) { return tg::stack({x[0], x[1]}); });
  table.add("stack", "scalars, given as a span", {draw({}), draw({})},
            [](auto& x) { return tg::stack(std::span(x), 0); });
}

}  // namespace

void add_views(Table& table) {
  add_axes(table);
  add_copies(table);
  add_parts(table);
  add_joins(table);
}

}  // namespace operations
