// Weights in bfloat16: rounding, and models that contain them. Products: see products_test.cpp.
#include <tapegrad/testing.hpp>

#include <bit>
#include <cstdint>
#include <limits>
#include <optional>

#include "close.hpp"
#include "temporary_folder.hpp"
#include "text.hpp"

namespace tg = tapegrad;
using tg::BFloat16;
using tg::Shape;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

float rounded(float x) { return BFloat16::nearest(x); }

template <class T> tg::Array<T> rounded(tg::Array<T> x) {
  for (T& number : x) number = rounded(static_cast<float>(number));
  return x;
}

// A small language model: an embedding tied to the head, layers between, and a norm.
template <class T> struct RoundedModel {
  tg::Embedding<T> embedding{23, 12};
  tg::Linear<T> layer{12, 12};
  std::optional<tg::Linear<T>> without_bias{tg::Linear<T>(12, 12, {.bias = false})};
  tg::LayerNorm<T> norm{12};
  TAPEGRAD_FIELDS(embedding, layer, without_bias, norm)

  tg::Tensor<T> operator()(const tg::Tensor<T>& x) const {
    return tg::linear(norm((*without_bias)(tg::tanh(layer(x)))), embedding.weight);
  }
  tg::Tensor<T> operator()(const tg::IntArray& ids) const { return (*this)(embedding(ids)); }
};

// The same model in T with rounded weights.
template <class T> RoundedModel<T> with_rounded_weights(const RoundedModel<T>& model) {
  RoundedModel<T> copy = model;
  for (auto* weight : {&copy.embedding.weight, &copy.layer.weight, &copy.without_bias->weight})
    weight->set_value(rounded(weight->value()));
  return copy;
}

const tg::IntArray kIds = tg::int_array({{1, 22, 3}, {0, 5, 7}});

}  // namespace

TEST_CASE("A float is rounded to the nearest bfloat16, ties to even") {
  CHECK(rounded(1.0f) == 1);
  CHECK(rounded(0x1.01p0f) == 1);              // half-way between 1 and 1 + 2^-7: 1 is even
  CHECK(rounded(0x1.03p0f) == 0x1.04p0f);      // half-way: up to the even one
  CHECK(rounded(0x1.010002p0f) == 0x1.02p0f);  // just above half-way
  CHECK(rounded(-0x1.03p0f) == -0x1.04p0f);
  CHECK(rounded(0x1.ffp0f) == 2);  // into the exponent
  CHECK(rounded(std::numeric_limits<float>::max()) == kInf);
  CHECK(rounded(-kInf) == -kInf);
  CHECK(std::signbit(rounded(-0.0f)));
  CHECK(rounded(0x1p-133f) == 0x1p-133f);  // the smallest positive number
  for (const std::uint32_t nan : {0x7fc00000u, 0x7f800001u, 0xff800001u, 0xffffffffu, 0x7fffffffu})
    CHECK(std::isnan(rounded(std::bit_cast<float>(nan))));
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float exact = BFloat16{static_cast<std::uint16_t>(bits)};
    if (!std::isnan(exact) && BFloat16::nearest(exact).bits != bits) FAIL_CHECK("not kept: " << bits);
  }
}

TEST_CASE_TEMPLATE("A model in bfloat16 matches one with rounded weights, tied or not", T, float, double) {
  tg::manual_seed(3);
  RoundedModel<T> model;
  const RoundedModel<T> expected = with_rounded_weights(model);
  const std::size_t count = tg::count_parameters(model);
  const std::string before = listing(model);

  tg::hold_in_bfloat16(model);

  CHECK(listing(model) == before);
  CHECK(tg::count_parameters(model) == count);
  check_close(model(kIds).value(), expected(kIds).value(), std::is_same_v<T, float> ? 1e-5 : 1e-12);
  const tg::IntArray one = tg::int_array({{22}});
  check_close(model(one).value(), expected(one).value(), std::is_same_v<T, float> ? 1e-5 : 1e-12);

  const RoundedModel<T> copy = model;
  CHECK(copy(kIds).value() == model(kIds).value());
  CHECK(copy.layer.weight.is_in_bfloat16());
  RoundedModel<T> assigned;
  assigned = model;
  CHECK(assigned(kIds).value() == model(kIds).value());
  const RoundedModel<T> moved = std::move(assigned);
  CHECK(moved(kIds).value() == model(kIds).value());
}

TEST_CASE("The float weights are freed") {
  tg::Linear<> layer(300, 200);
  const std::ptrdiff_t before = tg::detail::array_bytes_in_use;
  tg::hold_in_bfloat16(layer);
  CHECK(before - tg::detail::array_bytes_in_use == 4 * 300 * 200);
  CHECK(layer.weight.bfloat16().size() == 300 * 200);
  tg::hold_in_bfloat16(layer);  // a second call changes nothing
  CHECK(layer.weight.size() == 300 * 200);
  CHECK(layer.weight.shape() == Shape{200, 300});
  CHECK(layer.weight.dimension() == 2);
}

TEST_CASE("Gradients flow through weights in bfloat16, and to the remaining parameters") {
  tg::manual_seed(4);
  RoundedModel<double> model;
  tg::hold_in_bfloat16(model);
  tg::Parameter<double> x(tg::normal<double>({5, 12}));
  auto named = tg::named_parameters(model);
  REQUIRE(named.size() == 3);
  CHECK(named[0].first == "layer.bias");
  CHECK(named[1].first == "norm.weight");
  CHECK(named[2].first == "norm.bias");
  CHECK(tg::named_parameters(std::as_const(model)).size() == 3);
  CHECK(tg::parameters(model).size() == 3);
  named.emplace_back("x", x);
  CHECK_GRADIENTS([&] { return model(x); }, named);
  CHECK_FALSE(model.layer.weight.has_grad());
  const tg::Tape tape;
  tg::sum(model(kIds)).backward();  // the embedding gets no gradient
  CHECK(model.layer.bias.has_grad());
}

TEST_CASE("Functions that need a weight's float values report that it is stored in bfloat16") {
  RoundedModel<float> model;
  tg::named_parameters(model);  // names them
  tg::hold_in_bfloat16(model);
  auto& weight = model.layer.weight;
  CHECK(thrown_by([&] { weight.value(); }) ==
        "[value] expected a weight of float or double, got layer.weight (12, 12), which is held in bfloat16; only "
        "linear and embedding read it");
  const std::string released = "[value] expected a parameter that holds its value, got layer.weight (12, 12)";
  CHECK(thrown_by([&] { weight.mutable_value(); }).starts_with(released));
  CHECK(thrown_by([&] { tg::sum(weight); }).starts_with(released));
  const tg::Parameter<float>& parameter = weight;
  CHECK(thrown_by([&] {
          tg::linear(tg::Tensor<float>(tg::Array<float>(Shape{1, 12})), parameter);
        }).starts_with(released));
  CHECK(thrown_by([&] { tg::save_bytes(model.layer); }).find("held in bfloat16") != std::string::npos);
  CHECK(thrown_by([&] { weight.set_requires_grad(true); }).starts_with(released));
  CHECK(thrown_by([] { tg::Tensor<float>().shape(); }) ==
        "[value] expected a defined tensor, got a default-constructed or moved-from one");
  CHECK_THROWS_AS(tg::Weight<float>().hold_in_bfloat16(), std::logic_error);
  CHECK_THROWS_WITH_AS(model.layer(tg::Array<float>{1.0f}),
                       "[linear] expected an input of shape (..., 12) for layer.weight (12, 12), got (1): axis -1 is 1",
                       std::invalid_argument);
  CHECK_THROWS_AS(model.embedding(tg::int_array({23})), std::out_of_range);
  const TemporaryFolder folder;
  CHECK_THROWS_AS(tg::save(model, folder.path("model")), std::logic_error);
  CHECK_FALSE(std::filesystem::exists(folder.path("model")));
}

TEST_CASE("Anomaly mode checks weights in bfloat16, too") {
  tg::Linear<> layer(2, 1, {.bias = false});
  tg::named_parameters(layer);
  layer.weight.set_value(tg::Array<float>{{1e30f, 1.0f}});
  layer.weight.hold_in_bfloat16();
  const auto message = [&](float x) {
    const tg::Tape tape({.detect_anomaly = true});
    return thrown_by([&] { layer(tg::Array<float>{{x, x}}); });
  };
  CHECK(message(1.0f) == "nothing");
  CHECK(message(1e30f).starts_with("[linear] expected finite values, got inf at (0, 0)"));
  layer.weight.set_value(tg::Array<float>{{1.0f, 3.4e38f}});  // bfloat16 rounds this to infinity
  layer.weight.hold_in_bfloat16();
  CHECK(message(1.0f).starts_with("[linear] expected finite values, got inf at (0, 0)"));
}

TEST_CASE("A weight in bfloat16 prints its numbers") {
  tg::Weight<float> weight(tg::Array<float>{1.0f, 2.5f});
  weight.hold_in_bfloat16();
  CHECK(printed(weight) == "{ 1. ,  2.5}\nTensor<float> (2) held in bfloat16");
}

TEST_CASE("Loading and set_value restore a weight's float values") {
  tg::Linear<> layer(3, 2), other(3, 2);
  const auto bytes = tg::save_bytes(other);
  tg::hold_in_bfloat16(layer);
  tg::load(layer, bytes);
  CHECK_FALSE(layer.weight.is_in_bfloat16());
  CHECK(layer.weight.value() == other.weight.value());
  layer.weight.hold_in_bfloat16();
  CHECK_THROWS_AS(other.weight.share_value(layer.weight.shared_value()), std::invalid_argument);
  CHECK_THROWS_AS(layer.weight.set_value(tg::Array<float>{1.0f}), std::invalid_argument);
  CHECK(layer.weight.is_in_bfloat16());
  layer.weight.set_value(other.weight.value());
  layer.weight.set_requires_grad(true);
  CHECK(tg::parameters(layer).size() == 2);
}

TEST_CASE("A Weight converts, copies and is assigned like a parameter") {
  tg::Linear<> layer(3, 2), other(3, 2);
  const tg::ParameterHandle handle(layer.weight);
  tg::Parameter<float>& parameter = layer.weight;
  CHECK(handle == tg::ParameterHandle(parameter));
  tg::hold_in_bfloat16(layer);
  const tg::Linear<> copy = layer;
  CHECK(copy.weight.bfloat16().data() == layer.weight.bfloat16().data());  // shared
  other.weight = layer.weight;
  CHECK(other.weight.is_in_bfloat16());
  handle->set_value(tg::Array<float>{{1, 2, 3}, {4, 5, 6}});  // bypasses the Weight
  CHECK_FALSE(layer.weight.is_in_bfloat16());
  CHECK_THROWS_AS(layer.weight.bfloat16(), std::logic_error);
  CHECK(layer(tg::Array<float>{1, 0, 0}).value() == tg::Array<float>{1, 4} + layer.bias.value());
  CHECK(tg::parameters(layer).size() == 2);
  other.weight = parameter;
  CHECK(other.weight.value() == layer.weight.value());
  other.weight = tg::Parameter<float>(tg::Array<float>{{1, 1, 1}, {2, 2, 2}});
  CHECK(other.weight.value() == tg::Array<float>{{1, 1, 1}, {2, 2, 2}});
  other.weight = std::move(layer.weight);
  CHECK(handle == tg::ParameterHandle(other.weight));
  other.weight = {};
  CHECK_FALSE(other.weight.defined());
}
