/// Tensors: values, printing, retained gradients; how data enters: arrays from braces and ranges, tensors from arrays,
/// and mixed arithmetic.
#include <xtensor/xadapt.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include <array>
#include <iomanip>
#include <limits>
#include <list>
#include <optional>
#include <span>
#include <type_traits>

#include "in_double.hpp"
#include "text.hpp"

// Containers move handles around.
static_assert(std::is_nothrow_move_constructible_v<Tensor>);
// model(x) accepts arrays and expressions of its element type; others need an explicit conversion: Tensor(ids).
static_assert(std::is_convertible_v<Array, Tensor> && std::is_convertible_v<xt::xarray<double>, Tensor>);
static_assert(std::is_convertible_v<std::vector<double>, Tensor>);
static_assert(!std::is_convertible_v<tg::IntArray, Tensor> && !std::is_convertible_v<tg::Array<float>, Tensor>);
static_assert(std::is_constructible_v<Tensor, tg::IntArray> && std::is_constructible_v<Tensor, tg::Array<float>>);

// Accessors of a temporary return copies: a reference would dangle.
template <class X> constexpr bool kReturnsValue = !std::is_reference_v<X>;
static_assert(kReturnsValue<decltype(std::declval<Tensor>().value())>);
static_assert(kReturnsValue<decltype(std::declval<Tensor>().shape())>);
static_assert(kReturnsValue<decltype(std::declval<Tensor>().grad())>);
static_assert(kReturnsValue<decltype(std::declval<Tensor>().shared_value())>);
static_assert(kReturnsValue<decltype(std::declval<const Parameter>().value())>);
static_assert(kReturnsValue<decltype(std::declval<const Parameter>().grad())>);
static_assert(kReturnsValue<decltype(std::declval<tg::Weight<double>>().value())>);
static_assert(kReturnsValue<decltype(std::declval<tg::Weight<double>>().shape())>);
static_assert(std::is_same_v<decltype(std::declval<const Tensor&>().value()), const tg::Array<double>&>);

namespace {

struct OneWeight {
  tg::Linear<double> layer{2, 2};
  TAPEGRAD_FIELDS(layer)
  Tensor operator()(const Tensor& x) const { return layer(x); }
};

}  // namespace

// ---- values -------------------------------------------------------------------------------------------------------

TEST_CASE("A tensor copies an lvalue array and takes over a moved one") {
  Array a{1.0, 2.0};
  const Tensor copied(a);
  a(0) = 5.0;
  CHECK(copied.value()(0) == 1.0);
  const double* elements = a.data();
  const Tensor moved(std::move(a));
  CHECK(moved.value().data() == elements);
}

TEST_CASE("Copies of a tensor and its detached copy share one value") {
  const Tensor x(Array{1.0, 2.0});
  const Tensor copy = x, constant = x.detach();
  CHECK(&copy.value() == &x.value());
  CHECK(&constant.value() == &x.value());
  CHECK(x.shared_value() == copy.shared_value());
}

TEST_CASE("item returns the only element, for any number of axes, and refuses several or none, naming the shape") {
  CHECK(Tensor(Array(tg::Shape{}, 2.5)).item() == 2.5);
  CHECK(Tensor(Array(tg::Shape{1, 1, 1}, 2.5)).item() == 2.5);
  CHECK(tg::Tensor<float>(tg::Array<float>{0.1F}).item() == 0.1F);
  CHECK_THROWS_WITH_AS(Tensor(Array{1.0, 2.0}).item(), "[item] expected one element, got a tensor of shape (2)",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Tensor(Array(tg::Shape{0, 3})).item(), Contains("(0, 3)"), std::invalid_argument);
}

TEST_CASE("A default-constructed tensor is undefined, and reading its value throws") {
  const Tensor none;
  CHECK_FALSE(none.defined());
  CHECK_FALSE(none.requires_grad());
  CHECK_FALSE(none.has_grad());
  CHECK(none.shared_value() == nullptr);
  CHECK_FALSE(none.detach().defined());
  CHECK_THROWS_AS(none.value(), std::logic_error);
  CHECK_THROWS_AS(none.shape(), std::logic_error);
  CHECK_THROWS_AS(none.size(), std::logic_error);
  CHECK_THROWS_AS(none.dimension(), std::logic_error);
  CHECK_THROWS_WITH_AS(none.item(), Contains("default-constructed or moved-from"), std::logic_error);
  CHECK_THROWS_AS(none + none, std::logic_error);
  CHECK_THROWS_AS(none.grad(), std::logic_error);
}

// ---- printing -----------------------------------------------------------------------------------------------------

TEST_CASE("A printed tensor shows its values, its element type and its shape, also without elements or a tape") {
  CHECK(printed(Tensor(Array{{1.5, 2.0}, {3.0, -4.0}})) == "{{ 1.5,  2. },\n { 3. , -4. }}\nTensor<double> (2, 2)");
  CHECK(printed(tg::Tensor<float>(tg::Array<float>{1.0F, 2.0F})) == "{ 1.,  2.}\nTensor<float> (2)");
  CHECK(printed(Parameter(Array{1.0, 2.0})) == "{ 1.,  2.}\nTensor<double> (2)");
  CHECK(printed(Tensor(Array(tg::Shape{}, 2.5))) == " 2.5\nTensor<double> ()");
  CHECK(printed(Tensor()) == "Tensor<double> undefined");
  CHECK(printed(Tensor(Array(tg::Shape{0, 3}))) == "{}\nTensor<double> (0, 3)");
  CHECK(printed(Tensor(Array(tg::Shape{2, 0}))).find("Tensor<double> (2, 0)") != std::string::npos);
  std::optional<tg::Tape> tape(std::in_place);
  const Tensor y = Parameter(Array{1.0, 2.0}) * 2.0;
  tape.reset();
  CHECK(printed(y) == "{ 2.,  4.}\nTensor<double> (2)");
}

TEST_CASE("Gradients and other arrays print without including xtensor's header") {
  tg::Tape tape;
  const Parameter w(Array{{1.0, 2.0}});
  tg::sum(w * w).backward();
  CHECK(printed(w.grad()) == "{{ 2.,  4.}}");
  CHECK(printed(tg::Array<float>{0.5F}) == "{ 0.5}");
  CHECK(printed(tg::IntArray{1, 2}) == "{1, 2}");
  CHECK(printed(tg::BoolArray{true, false}) == "{ true, false}");
}

TEST_CASE("NaN and infinities are printed as such, and large tensors are shortened") {
  const std::string special = printed(Tensor(Array{std::nan(""), std::numeric_limits<double>::infinity(), 1.0}));
  CHECK(special.find("nan") != std::string::npos);
  CHECK(special.find("inf") != std::string::npos);
  const std::string large = printed(Tensor(Array(tg::Shape{300, 400}, 0.25)));
  CHECK(large.find("...") != std::string::npos);
  CHECK(large.find("(300, 400)") != std::string::npos);
  CHECK(large.size() < 1000);
}

TEST_CASE("Printing a tensor leaves the stream's format as it was") {
  std::ostringstream out;
  out << std::setprecision(3) << std::scientific << Tensor(Array{1.0 / 3.0, 2e9}) << '\n';
  out.str("");
  out << 0.123456789;
  CHECK(out.str() == "1.235e-01");
}

// ---- retained gradients -------------------------------------------------------------------------------------------

TEST_CASE(
    "retain_grad keeps a tensor's gradients, also if called after its use; they accumulate and outlive the tape") {
  const Parameter w(Array{1.0, 2.0});
  Tensor y;
  {
    const tg::Tape tape;
    y = w * w;
    const Tensor loss = tg::sum(y * 3.0);
    y.retain_grad();
    y.retain_grad();  // a second call changes nothing
    CHECK_FALSE(y.has_grad());
    loss.backward(tg::retain_graph);
    CHECK(y.has_grad());
    check_close(y.grad(), Array{3.0, 3.0}, 0.0);
    loss.backward(tg::retain_graph);
    check_close(y.grad(), Array{6.0, 6.0}, 0.0);
    tg::sum(y * y + y).backward(tg::retain_graph);
    check_close(y.grad(), Array{9.0, 15.0}, 0.0);
    y.backward(Array{0.5, -1.0});  // its own seed
  }
  check_close(y.grad(), Array{9.5, 14.0}, 0.0);
  check_close(w.grad(), Array{2 * 9.5, 4 * 14.0}, 0.0);
}

TEST_CASE(
    "Copies of a tensor made after retain_grad share its gradient, earlier ones after their own call; unreached, it is "
    "0") {
  const Parameter w(Array{1.0, 2.0});
  const tg::Tape tape;
  Tensor y = w * w;
  Tensor earlier = y;
  y.retain_grad();
  const Tensor later = y;
  CHECK_THROWS_AS(earlier.grad(), std::logic_error);
  earlier.retain_grad();
  tg::sum(y * 3.0).backward();
  CHECK(&later.grad() == &y.grad());
  CHECK(&earlier.grad() == &y.grad());
  check_close(y.grad(), Array{3.0, 3.0}, 0.0);
  Tensor unused = w * w;
  unused.retain_grad();
  tg::sum(w).backward();
  CHECK_FALSE(unused.has_grad());
  check_close(unused.grad(), Array{0.0, 0.0}, 0.0);
}

TEST_CASE("grad of a tensor without a retained gradient names the remedy") {
  const Parameter w(Array{1.0, 2.0});
  const tg::Tape tape;
  const Tensor y = w * w;
  tg::sum(y).backward();
  CHECK_THROWS_WITH_AS(y.grad(), Contains("retain_grad() before backward()"), std::logic_error);
  CHECK_THROWS_WITH_AS(Tensor(Array{1.0}).grad(), Contains("got a constant"), std::logic_error);
  CHECK_FALSE(y.has_grad());
}

TEST_CASE("retain_grad requires a tensor on an active tape, and does nothing for a parameter") {
  Parameter w(Array{1.0, 2.0});
  w.retain_grad();
  Tensor constant(Array{1.0}), stale;
  CHECK_THROWS_WITH_AS(constant.retain_grad(), Contains("[retain_grad]"), std::logic_error);
  {
    const tg::Tape tape;
    stale = w * w;
    CHECK_THROWS_AS(constant.retain_grad(), std::logic_error);
  }
  CHECK_THROWS_WITH_AS(stale.retain_grad(), Contains("stale"), std::logic_error);
}

// ---- numbers in braces, and ranges --------------------------------------------------------------------------------

TEST_CASE("Nested braces make an array with one axis per level") {
  CHECK(tg::int_array({7}).shape() == tg::Shape{1});
  CHECK(tg::int_array({{7}}).shape() == tg::Shape{1, 1});
  CHECK(tg::int_array({{{7}}}).shape() == tg::Shape{1, 1, 1});
  CHECK(tg::int_array({}).shape() == tg::Shape{0});
  CHECK(tg::int_array({{1, 2, 3}, {4, 5, 6}}) == tg::IntArray{{1, 2, 3}, {4, 5, 6}});
  CHECK(tg::int_array({{{1, 2}}, {{3, 4}}, {{5, 6}}}) == tg::IntArray{{{1, 2}}, {{3, 4}}, {{5, 6}}});
  const int id = 3;
  const std::size_t other = 4;
  CHECK(tg::int_array({{id, other}}) == tg::int_array({{3, 4}}));
  check_close(tg::array<double>({{{1, 2.5}, {3, 4}}}), Array{{{1, 2.5}, {3, 4}}}, 0.0);
  CHECK(tg::array<bool>({true, false}) == tg::BoolArray{true, false});
  const tg::Tensor<float> x = tg::tensor({{1, 2}, {3, 4.5}});
  CHECK(x.value() == tg::Array<float>{{1, 2}, {3, 4.5}});
  CHECK(tg::tensor<double>({0.1}).item() == 0.1);
}

TEST_CASE("Rows of different lengths or depths are refused with both shapes") {
  const auto message = "[int_array] expected rows of equal shape in the braces, got (2) and (1)";
  CHECK_THROWS_WITH_AS(tg::int_array({{1, 2}, {3}}), message, std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::array<float>({{{1}, {2}}, {3, 4}}), Contains("got (2, 1) and (2)"), std::invalid_argument);
  CHECK_THROWS_AS(tg::int_array({{1, 2}, 3}), std::invalid_argument);
  CHECK_THROWS_AS(tg::tensor({{{1}, {2}}, {{3}}}), std::invalid_argument);
}

TEST_CASE("Ranges make arrays with one axis or with a shape of the same size") {
  const std::vector<int> numbers{1, 2, 3, 4, 5, 6};
  CHECK(tg::int_array(numbers) == tg::IntArray{1, 2, 3, 4, 5, 6});
  CHECK(tg::int_array(std::span(numbers).first(2)) == tg::IntArray{1, 2});
  CHECK(tg::int_array(std::list<short>{1, 2}) == tg::IntArray{1, 2});
  CHECK(tg::int_array(numbers, {2, 3}) == tg::IntArray{{1, 2, 3}, {4, 5, 6}});
  CHECK(tg::int_array(std::vector<int>{}).shape() == tg::Shape{0});
  CHECK(tg::int_array(std::vector<int>{}, {2, 0}).shape() == tg::Shape{2, 0});
  CHECK(tg::array<float>(numbers, {3, 2}) == tg::Array<float>{{1, 2}, {3, 4}, {5, 6}});
  CHECK(tg::tensor(numbers, {3, 2}).value() == tg::Array<float>{{1, 2}, {3, 4}, {5, 6}});
  CHECK(tg::tensor<double>(numbers).value() == Array{1, 2, 3, 4, 5, 6});
  CHECK(tg::tensor<double>(std::array{0.5F, 1.5F}, {2, 1}).value() == tg::array<double>({{0.5}, {1.5}}));
  CHECK_THROWS_WITH_AS(tg::int_array(numbers, {2, 2}),
                       "[int_array] expected as many numbers as the shape has elements, got 6 for (2, 2)",
                       std::invalid_argument);
  for (const tg::Shape& other : {tg::Shape{7}, tg::Shape{0}, tg::Shape{}})
    CHECK_THROWS_WITH_AS(tg::array<double>(numbers, other), Contains("got 6 for ("), std::invalid_argument);
  CHECK_THROWS_AS(tg::int_array(std::vector<int>{}, {std::size_t{1} << 32, std::size_t{1} << 32}),
                  std::invalid_argument);
}

TEST_CASE("A single id in double braces is a batch of one") {
  const tg::Embedding<double> embedding(10, 3);
  const std::int64_t id = 4;
  const Tensor one = embedding({{id}});
  CHECK(one.shape() == tg::Shape{1, 1, 3});
  check_close(one.value(), embedding(tg::int_array({{4}})).value(), 0.0);
  CHECK(embedding({{1, 2, 3}, {4, 5, 6}}).shape() == tg::Shape{2, 3, 3});
  CHECK(embedding({1, 2}).shape() == tg::Shape{2, 3});
  CHECK_THROWS_WITH_AS(embedding({{1, 2}, {3}}), "[Embedding] expected rows of equal length, got 2 and 1 ids",
                       std::invalid_argument);
  CHECK_THROWS_AS(embedding({{10}}), std::out_of_range);
}

// ---- implicit conversion to a tensor ------------------------------------------------------------------------------

TEST_CASE("Arrays, expressions, views and vectors convert to tensors in a model's call") {
  const OneWeight model;
  const Array x{{1.0, 2.0}, {3.0, 4.0}};
  const Array expected = model(Tensor(x)).value();
  check_close(model(x).value(), expected, 0.0);
  check_close(model(x * 1.0).value(), expected, 0.0);
  check_close(model(Array(x)).value(), expected, 0.0);
  check_close(model(xt::xarray<double>(x)).value(), expected, 0.0);
  check_close(model(xt::xtensor<double, 2>(x)).value(), expected, 0.0);
  check_close(model(xt::view(x, xt::range(0, 1))).value(), Array(xt::view(expected, xt::range(0, 1))), 0.0);
  const std::vector<double> row{1.0, 2.0};
  check_close(model(row).value(), Array(xt::view(expected, 0)), 1e-15);
  check_close(model(xt::adapt(row, std::vector<std::size_t>{1, 2})).value(), Array(xt::view(expected, xt::range(0, 1))),
              0.0);
}

TEST_CASE("An array or expression in arithmetic with a tensor is a constant") {
  const Parameter p(Array{{1.0, 2.0}, {3.0, 4.0}});
  const Array a{{2.0, 4.0}, {8.0, 16.0}};
  const tg::Tape tape;
  check_close((p + a).value(), Array(p.value() + a), 0.0);
  check_close((a + p).value(), Array(p.value() + a), 0.0);
  check_close((p - a).value(), Array(p.value() - a), 0.0);
  check_close((a - p).value(), Array(a - p.value()), 0.0);
  check_close((p * a).value(), Array(p.value() * a), 0.0);
  check_close((a * p).value(), Array(p.value() * a), 0.0);
  check_close((p / a).value(), Array(p.value() / a), 0.0);
  check_close((a / p).value(), Array(a / p.value()), 0.0);
  check_close(((a * 2.0 - 1.0) * p).value(), Array((a * 2.0 - 1.0) * p.value()), 0.0);
  check_close((p + tg::IntArray{10, 20}).value(), Array{{11.0, 22.0}, {13.0, 24.0}}, 0.0);
  check_close((p * p + a).value(), Array(p.value() * p.value() + a), 0.0);
  check_close((p * 1.0 + xt::xtensor<float, 1>{1.0F, 2.0F}).value(), Array{{2.0, 4.0}, {4.0, 6.0}}, 0.0);
  CHECK_THROWS_AS(p + Array(tg::Shape{3}, 1.0), std::invalid_argument);
  tg::sum(p * a - a / p).backward();
  check_close(p.grad(), Array(a + a / (p.value() * p.value())), 1e-14);
}
