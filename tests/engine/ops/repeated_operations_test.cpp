/// Operations on generated inputs: a row of the table of operations, applied with more axes, must repeat the call of
/// the row for each element of these axes, along any axis, for any extents, with NaN and infinity, on any number of
/// threads.
#include <cctype>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>

#include "../../operations/run.hpp"
#include "poison.hpp"
#include "sanitized.hpp"
#include "special_values.hpp"
#include "threads.hpp"

namespace tg = tapegrad;
using namespace operations;
using tg::Shape;

namespace {

constexpr std::size_t kPieces = 5;  // different inputs of the row; larger inputs repeat them

using Extents = std::map<char, std::size_t>;

// A way to apply a row: `outer` axes of each input before the row's own axes, `inner` axes of all inputs after them.
struct Form {
  std::vector<Shape> outer;
  Shape inner;
  Extents extents;
  enum Numbers { plain, special, shifted } numbers = plain;  // special: with NaN and infinity; shifted: by 8192
};

std::ostream& operator<<(std::ostream& out, const Form& form) {
  for (const Shape& outer : form.outer) out << tg::to_string(outer) << ' ';
  constexpr const char* kNumbers[]{"plain", "special", "shifted"};
  out << "- " << tg::to_string(form.inner) << ", " << kNumbers[form.numbers] << ',';
  for (const auto& [letter, extent] : form.extents) out << ' ' << letter << '=' << extent;
  return out;
}

std::size_t count(const Shape& shape) { return tg::element_count(shape); }

Shape joined(const Shape& a, const Shape& b, const Shape& c) {
  Shape all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

// The sample's extents. With `first`, free extents count up from it.
Extents extents_of(const Sample& sample, std::optional<std::size_t> first = {}) {
  Extents extents;
  for (std::size_t j = 0; j < sample.operands.size(); ++j) {
    std::size_t axis = sample.operands[j].outer == Operand::batch;
    for (const auto& [letter, optional] : sample.operands[j].axes) extents[letter] = sample.inputs[j].shape[axis++];
  }
  for (auto& [letter, extent] : extents)
    if (first && std::islower(static_cast<unsigned char>(letter))) extent = *first > 1 ? (*first)++ : *first;
  return extents;
}

Shape row_shape(const Operand& operand, const Extents& extents) {
  Shape shape;
  for (const auto& [letter, optional] : operand.axes) shape.push_back(extents.at(letter));
  return shape;
}

Shape broadcast(const std::vector<Shape>& shapes) {
  Shape all;
  for (const Shape& shape : shapes) {
    while (shape.size() > all.size()) all.insert(all.begin(), 1);
    for (std::size_t i = 1; i <= shape.size(); ++i)
      if (shape[shape.size() - i] != 1) all[all.size() - i] = shape[shape.size() - i];
  }
  return all;
}

// The element of `own` that element i of `all` is broadcast from.
std::size_t broadcast_from(std::size_t i, const Shape& all, const Shape& own) {
  std::size_t from = 0, step = 1;
  for (std::size_t axis = 1; axis <= own.size(); ++axis) {
    const std::size_t extent = own[own.size() - axis];
    from += extent == 1 ? 0 : i % all[all.size() - axis] * step;
    step *= extent;
    i /= all[all.size() - axis];
  }
  return from;
}

template <class T> tg::Array<T> piece(const Sample& sample, const Form& form, std::size_t j, std::size_t k) {
  Draw drawn = sample.inputs[j];
  drawn.shape = row_shape(sample.operands[j], form.extents);
  if (form.numbers == Form::shifted) drawn.low += 8192, drawn.high += 8192;
  tg::Array<T> piece = numbers<T>(drawn, 10 * k + j);
  if (form.numbers != Form::special || piece.size() == 0) return piece;
  const std::vector<std::vector<double>> marks{{}, {kNaN, kInfinity}, {kNaN, kNaN}, {kInfinity}, {-kInfinity}};
  std::size_t at = piece.size() / 3;
  for (const double mark : marks[(k + j) % kPieces]) {
    piece.data()[at] = static_cast<T>(mark);
    at = piece.size() - 1;
  }
  return piece;
}

// outer + row + inner axes from pieces of the row's shape.
template <class T>
tg::Array<T> assembled(const Shape& outer, const Shape& inner, const std::vector<tg::Array<T>>& pieces) {
  tg::Array<T> all(joined(outer, pieces[0].shape(), inner));
  const std::size_t row = pieces[0].size(), width = count(inner), rows = row == 0 ? 0 : count(outer);
  for (std::size_t o = 0; o < rows; ++o)
    for (std::size_t i = 0; i < width; ++i) {
      const T* from = pieces[(o * width + i) % kPieces].data();
      T* to = all.data() + o * row * width + i;
      for (std::size_t c = 0; c < row; ++c) to[c * width] = from[c];
    }
  return all;
}

// Applies the row, along the axis if it has one.
template <class T>
tg::Tensor<T> apply(const Sample& sample, const Inputs<T>& inputs, std::ptrdiff_t axis, bool from_end) {
  tg::manual_seed(0);
  if (!sample.double_along) return function_of<T>(sample)(inputs);
  const std::ptrdiff_t axes = static_cast<std::ptrdiff_t>(inputs[0].dimension() + sample.operands[0].axes.empty());
  if (from_end) axis -= std::max<std::ptrdiff_t>(axes, 1);
  if constexpr (std::same_as<T, float>)
    return sample.float_along(inputs, axis);
  else
    return sample.double_along(inputs, axis);
}

// The row's value and gradients. The digits of `code` are the numbers of the cotangent's and the inputs' pieces.
std::vector<tg::Array<double>> row_results(const Sample& sample, const Form& form, std::size_t code = 0) {
  Parameters<double> x;
  Inputs<double> inputs;
  const std::size_t cotangent = code % kPieces;
  const bool batch = sample.operands[0].outer == Operand::batch;
  tg::Tape tape;
  for (std::size_t j = 0; j < sample.inputs.size(); ++j) {
    x.emplace_back(piece<double>(sample, form, j, (code /= kPieces) % kPieces));
    inputs.push_back(batch ? tg::unsqueeze(x.back(), 0) : tg::Tensor<double>(x.back()));
  }
  tg::Tensor<double> y = apply<double>(sample, inputs, 0, false);
  if (batch && y.dimension() > 0 && y.shape()[0] == 1) y = tg::squeeze(y, 0);
  if (y.requires_grad()) y.backward(numbers<double>(draw(y.shape()), 100 + cotangent));
  return with_gradients(y.value(), x);
}

// All values and gradients by calls of the row, if these accept its inputs.
std::vector<tg::Array<double>> expected_results(const Sample& sample, const Form& form) {
  std::map<std::size_t, std::vector<tg::Array<double>>> known;
  known[0] = row_results(sample, form);
  const Shape outer = broadcast(form.outer), all = joined(outer, {}, form.inner);
  std::vector<Shape> own{all};  // of the value and the inputs
  std::vector<tg::Array<double>> expected{tg::Array<double>(joined(outer, known[0][0].shape(), form.inner), 0.0)};
  for (std::size_t j = 0; j < sample.inputs.size(); ++j) {
    own.push_back(joined(form.outer[j], {}, form.inner));
    expected.emplace_back(joined(form.outer[j], row_shape(sample.operands[j], form.extents), form.inner), 0.0);
  }
  const std::size_t width = count(form.inner), elements = count(all);
  std::vector<std::size_t> from(own.size());
  for (std::size_t i = 0; i < elements; ++i) {
    std::size_t code = 0;
    for (std::size_t n = own.size(); n-- > 0;) {
      from[n] = own[n] == all ? i : broadcast_from(i, all, own[n]);
      code = code * kPieces + from[n] % kPieces;
    }
    auto& one = known[code];
    if (one.empty()) one = row_results(sample, form, code);
    for (std::size_t n = 0; n < own.size(); ++n) {
      const std::size_t row = one[n].size();
      if (row == 0) continue;
      const double* add = one[n].data();
      double* to = expected[n].data() + from[n] / width * row * width + from[n] % width;
      for (std::size_t c = 0; c < row; ++c) to[c * width] += add[c];
    }
  }
  return expected;
}

// All values and gradients at once; `row` is the shape of one value.
template <class T>
std::vector<tg::Array<T>> results_at_once(const Sample& sample, const Form& form, const Shape& row,
                                          std::size_t threads = 1, bool from_end = false) {
  const Threads limit(threads);
  Parameters<T> x;
  for (std::size_t j = 0; j < sample.inputs.size(); ++j) {
    std::vector<tg::Array<T>> pieces;
    for (std::size_t k = 0; k < kPieces; ++k) pieces.push_back(piece<T>(sample, form, j, k));
    x.emplace_back(assembled(form.outer[j], form.inner, pieces));
  }
  poison(x[0].size() * sizeof(T));
  tg::Tape tape;
  const tg::Tensor<T> y = apply<T>(sample, inputs_of(x), static_cast<std::ptrdiff_t>(form.outer[0].size()), from_end);
  const Shape outer = broadcast(form.outer);
  REQUIRE(tg::to_string(y.shape()) == tg::to_string(joined(outer, row, form.inner)));
  std::vector<tg::Array<T>> dy;
  for (std::size_t k = 0; k < kPieces; ++k) dy.push_back(numbers<T>(draw(row), 100 + k));
  if (y.requires_grad()) y.backward(assembled(outer, form.inner, dy));
  return with_gradients(y.value(), x);
}

// NaN and infinities in the same places, and the same numbers but for the tolerance.
template <class T>
void check_same(const std::vector<tg::Array<T>>& actual, const std::vector<tg::Array<double>>& expected,
                double tolerance) {
  for (std::size_t n = 0; n < expected.size(); ++n) {
    CAPTURE(result_name(n));
    REQUIRE(tg::to_string(actual[n].shape()) == tg::to_string(expected[n].shape()));
    double scale = 0.03;
    for (const double e : expected[n]) scale = std::isfinite(e) ? std::max(scale, std::abs(e)) : scale;
    const T* const given = actual[n].data();
    const double *const wanted = expected[n].data(), bound = tolerance * scale;
    for (std::size_t i = 0, size = expected[n].size(); i < size; ++i) {
      const double a = given[i], e = wanted[i];
      if (a == e || (std::isnan(a) && std::isnan(e)) || std::abs(a - e) <= bound) continue;
      FAIL_CHECK("flat index " << i << ": expected " << e << ", got " << a);
      break;
    }
  }
}

// A form with these outer axes for all inputs that take any; `last` for the last input if its outer axes broadcast.
Form form_of(const Sample& sample, const Shape& outer, const Shape& last, const Extents& extents) {
  Form form{{}, {}, extents};
  for (const Operand& operand : sample.operands) {
    const bool is_last = &operand == &sample.operands.back() && operand.outer == Operand::broadcast;
    form.outer.push_back(operand.outer == Operand::none && !sample.double_along ? Shape{} : is_last ? last : outer);
  }
  return form;
}

std::vector<Form> small_forms(const Sample& sample) {
  std::vector<Form> forms;
  for (const auto& first : std::vector<std::optional<std::size_t>>{{}, 0, 1, 19}) {
    const Extents extents = extents_of(sample, first);
    const auto add = [&](const Shape& outer, const Shape& last, const Shape& inner = {}) {
      forms.push_back(form_of(sample, outer, last, extents));
      forms.back().inner = inner;
    };
    if (sample.double_along) {
      for (const Shape& outer : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0}, Shape{1, 1}})
        for (const Shape& inner : {Shape{}, Shape{3}, Shape{3, 2}, Shape{0}}) add(outer, outer, inner);
    } else if (sample.operands[0].outer == Operand::batch) {
      for (const std::size_t batch : {1, 2, 5, 0}) add({batch}, {});
    } else {
      for (const Shape& outer : {Shape{}, Shape{1}, Shape{7}, Shape{2, 3}, Shape{0}, Shape{2, 0}}) add(outer, outer);
      if (sample.operands.size() == 1 || sample.operands[1].outer != Operand::broadcast) continue;
      add({}, {3});
      add({3}, {});
      add({3}, {1});
      add({2, 1}, {3});
      add({1, 2, 1}, {3, 1, 2});
      add({0, 3}, {1});
      add({1, 2}, {0, 1});
    }
  }
  return forms;
}

// Forms of at least 50,000 elements, enough work for three threads.
std::vector<Form> large_forms(const Sample& sample) {
  std::vector<Form> forms;
  if (sample.double_along) {
    forms.push_back(form_of(sample, {25}, {}, extents_of(sample, 2010)));
    for (const auto& [n, inner] : {std::pair<std::size_t, std::size_t>(301, 61), {17, 3003}}) {
      forms.push_back(form_of(sample, n == 17 ? Shape{} : Shape{3}, {}, extents_of(sample, n)));
      forms.back().inner = {inner};
    }
  } else {
    for (const std::size_t first : {3, 31, 301}) {
      const Extents extents = extents_of(sample, first);
      std::size_t elements = 1;
      for (const Operand& operand : sample.operands) elements = std::max(elements, count(row_shape(operand, extents)));
      if (elements > 300'000) continue;
      const std::size_t rows = 50'000 / elements + 1;
      const bool batch = sample.operands[0].outer == Operand::batch;
      forms.push_back(form_of(sample, batch ? Shape{rows} : Shape{3, rows / 3 + 1}, {rows / 3 + 1}, extents));
      if (extents.empty()) {
        for (const auto& [outer, last] :
             {std::pair<Shape, Shape>({230, 1}, {231}), {{230, 231}, {231}}, {{50'001}, {1}}})
          forms.push_back(form_of(sample, outer, last, extents));
        break;
      }
    }
  }
  return forms;
}

// In float, sums of many products of numbers near 8192 are inaccurate.
std::vector<Form::Numbers> numbers_for(const Sample& sample) {
  for (const char* part : {"attention", "matmul", "linear", "einsum"})
    if (sample.operation.find(part) != std::string::npos) return {Form::plain, Form::special};
  return {Form::plain, Form::special, Form::shifted};
}

// Runs the check on all rows of the table.
template <class Check> void for_each_row(Check check) {
  for (const Sample& sample : table().samples) {
    if (sample.operands.empty()) continue;
    INFO(sample.title());
    check(sample);
  }
}

}  // namespace

TEST_CASE("Operations repeat their row along any axes, broadcast, empty, with NaN and infinity") {
  for_each_row([](const Sample& sample) {
    for (Form form : small_forms(sample))
      for (const auto numbers : numbers_for(sample)) {
        form.numbers = numbers;
        CAPTURE(form);
        std::vector<tg::Array<double>> expected;
        try {
          expected = expected_results(sample, form);
        } catch (const std::logic_error& error) {
          CHECK_MESSAGE(form.extents != extents_of(sample), error.what());
          if (count(broadcast(form.outer)) * count(form.inner) > 0)
            CHECK_THROWS_AS(results_at_once<double>(sample, form, {}), std::logic_error);
          continue;
        }
        const Shape row = row_results(sample, form)[0].shape();
        check_same(results_at_once<double>(sample, form, row), expected, 1e-12);
        check_same(results_at_once<float>(sample, form, row, 1, true), expected, 5e-6);
      }
  });
}

TEST_CASE("Operations on large inputs repeat their row, on one thread and on several") {
  const std::set<std::string> products{"matmul", "linear", "einsum"};  // sum in parts on several threads
  for_each_row([&](const Sample& sample) {
    for (Form& form : large_forms(sample))
      for (const auto numbers : {Form::plain, Form::special}) {
        if (kSanitized && numbers == Form::special) continue;  // takes the same paths
        form.numbers = numbers;
        CAPTURE(form);
        const std::vector<tg::Array<double>> expected = expected_results(sample, form);
        const Shape row = row_results(sample, form)[0].shape();
        const auto once = results_at_once<float>(sample, form, row, 3);
        check_same(once, expected, 1e-4);
        if (numbers == Form::special) continue;
        check_same(results_at_once<double>(sample, form, row, 3), expected, 1e-11);
        const auto again = results_at_once<float>(sample, form, row, 1);
        for (std::size_t i = 0; i < once.size(); ++i)
          CHECK((same_bits(again[i], once[i]) || products.contains(sample.operation)));
      }
  });
}

TEST_CASE("A scalar counts as one element along its axis, or as no other axes") {
  for_each_row([](const Sample& sample) {
    const auto& axes = sample.operands[0].axes;
    if (!sample.double_along || axes.empty() || !axes[0].optional || sample.operation == "gather") return;
    const auto results = [&](const Shape& shape, std::ptrdiff_t axis) {
      const Parameters<double> x{tg::Parameter<double>(tg::Array<double>(shape, 0.7))};
      tg::Tape tape;
      const tg::Tensor<double> y = sample.double_along(inputs_of(x), axis);
      if (y.requires_grad()) y.backward(tg::Array<double>(y.shape(), 1.5));
      return std::pair(y.value().data()[0], x[0].grad().data()[0]);
    };
    for (const std::ptrdiff_t axis : {0, -1}) CHECK(results({}, axis) == results({1}, 0));
  });
}
