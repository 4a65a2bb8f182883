#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <iomanip>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

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

// ---- values -------------------------------------------------------------------------------------------------------

TEST_CASE("A tensor is made from an array, an expression, a view or a shared value") {
  const Array a{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}};
  check_close(Tensor(a).value(), a, 0.0);
  check_close(Tensor(Array(a)).value(), a, 0.0);
  check_close(Tensor(xt::xarray<double>(a)).value(), a, 0.0);
  check_close(Tensor(2.0 * a - a).value(), a, 0.0);
  check_close(Tensor(xt::transpose(a)).value(), Array{{1.0, 4.0}, {2.0, 5.0}, {3.0, 6.0}}, 0.0);
  check_close(Tensor(xt::xarray<int>{1, 2}).value(), Array{1.0, 2.0}, 0.0);
  check_close(tg::Tensor<float>(a).value(), a, 0.0);
  const tg::Value<double> value = tg::make_value<double>(a);
  CHECK(Tensor(value).shared_value() == value);
}

TEST_CASE("A tensor copies an lvalue array and takes over a moved one") {
  Array a{1.0, 2.0};
  const Tensor copied(a);
  a(0) = 5.0;
  CHECK(copied.value()(0) == 1.0);
  const double* elements = a.data();
  const Tensor moved(std::move(a));
  CHECK(moved.value().data() == elements);
}

TEST_CASE("The value, shape and gradient of a temporary can be stored and iterated over") {
  const auto made = [] { return tg::softmax(Tensor(Array{{1.0, 2.0, 3.0}}), -1); };
  const auto& value = made().value();
  const auto& shape = made().shape();
  const auto again = made();
  CHECK(value == again.value());
  CHECK(shape == tg::Shape{1, 3});
  double sum = 0;
  for (const double p : made().value()) sum += p;
  CHECK(sum == doctest::Approx(1.0));
  const auto& gradient = Parameter(Array{1.0, 2.0}).grad();
  CHECK(gradient == Array{0.0, 0.0});
}

TEST_CASE("Copies of a tensor and its detached copy share one value") {
  const Tensor x(Array{1.0, 2.0});
  const Tensor copy = x, constant = x.detach();
  CHECK(&copy.value() == &x.value());
  CHECK(&constant.value() == &x.value());
  CHECK(x.shared_value() == copy.shared_value());
}

TEST_CASE("A tensor reports its shape, number of axes and number of elements") {
  const Tensor x(Array(tg::Shape{4, 1, 3}, 0.5));
  CHECK(tg::to_string(x.shape()) == "(4, 1, 3)");
  CHECK(x.dimension() == 3);
  CHECK(x.size() == 12);
  const Tensor scalar(Array(tg::Shape{}, 0.5));
  CHECK(tg::to_string(scalar.shape()) == "()");
  CHECK(scalar.dimension() == 0);
  CHECK(scalar.size() == 1);
  CHECK(Tensor(Array(tg::Shape{2, 0})).size() == 0);
}

TEST_CASE("item returns the only element, for any number of axes") {
  CHECK(Tensor(Array(tg::Shape{}, 2.5)).item() == 2.5);
  CHECK(Tensor(Array(tg::Shape{1, 1, 1}, 2.5)).item() == 2.5);
  CHECK(tg::Tensor<float>(tg::Array<float>{0.1F}).item() == 0.1F);
}

TEST_CASE("item refuses a tensor with several elements or none, naming its shape") {
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

TEST_CASE("detach stops the gradient") {
  const Parameter w(Array{1.0, 2.0});
  const tg::Tape tape;
  const Tensor y = w * w;
  CHECK(y.requires_grad());
  CHECK_FALSE(y.detach().requires_grad());
  CHECK_FALSE(w.detach().requires_grad());
  tg::sum(y.detach() * w).backward();
  check_close(w.grad(), Array{1.0, 4.0}, 0.0);
}

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

TEST_CASE("Copies of a tensor made after retain_grad share its gradient, and earlier copies after their own call") {
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
}

TEST_CASE("A retained gradient is zeros if the backward pass did not reach the tensor") {
  const Parameter w(Array{1.0, 2.0});
  const tg::Tape tape;
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
  CHECK_THROWS_WITH_AS(y.grad(), Contains("[grad]"), std::logic_error);
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
