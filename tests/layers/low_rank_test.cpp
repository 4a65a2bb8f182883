// Low-rank updates of linear layers, compared with their formula and central differences.
#include <tapegrad/testing.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "in_double.hpp"
#include "text.hpp"

namespace {

struct Adapted {
  tg::Linear<double> first{4, 6}, second{6, 3, {.bias = false}};
  tg::LayerNorm<double> norm{6};
  TAPEGRAD_FIELDS(first, norm, second)

  Tensor operator()(const Tensor& x) const { return second(norm(first(x))); }
};

// Everything a conversion could change: layers and settings as printed, names, values and requires_grad.
template <class M> std::vector<std::string> state_of(const M& model) {
  std::vector<std::string> state{listing(model)};
  for (const auto& [name, parameter] : tg::named_parameters(model)) {
    std::ostringstream values;
    values << name << ' ' << parameter->requires_grad() << std::hexfloat;
    for (const double x : parameter->value()) values << ' ' << x;
    state.push_back(values.str());
  }
  return state;
}

Parameter drawn(const tg::Shape& shape) { return Parameter(tg::normal<double>(shape)); }

// Makes B nonzero.
void train_a_little(Adapted& model) {
  model.first.low_rank->B.set_value(tg::normal<double>({6, 2}));
  model.second.low_rank->B.set_value(tg::normal<double>({3, 2}));
}

}  // namespace

TEST_CASE("An update starts as 0, under PEFT's names") {
  tg::manual_seed(1);
  Adapted model;
  const Tensor x(tg::normal<double>({5, 4}));
  const Array before = model(x).value();
  for (const auto& parameter : tg::parameters(model)) parameter->set_requires_grad(false);
  tg::add_low_rank(model, 2, 8);
  CHECK(model(x).value() == before);
  std::vector<std::string> trained;
  for (const auto& [name, parameter] : tg::named_parameters(model))
    if (parameter->requires_grad()) trained.push_back(name + ' ' + tg::to_string(parameter->shape()));
  CHECK(listing(model.first)
            .starts_with(
                "Linear(lora_alpha=8)  weight (6, 4), bias (6), lora_A.weight (2, 4), lora_B.weight (6, 2)  50\n"));
  CHECK(trained == std::vector<std::string>{"first.lora_A.weight (2, 4)", "first.lora_B.weight (6, 2)",
                                            "second.lora_A.weight (2, 6)", "second.lora_B.weight (3, 2)"});
}

TEST_CASE("A is uniform within +-1 / sqrt(in_features), drawn from the given generator") {
  tg::Linear<double> layer(100, 3), same(100, 3);
  tg::Generator generator(7), again(7);
  tg::add_low_rank(layer, 50, 1, generator);
  tg::add_low_rank(same, 50, 1, again);
  const Array& a = layer.low_rank->A.value();
  CHECK(a == same.low_rank->A.value());
  const auto [least, most] = std::minmax_element(a.begin(), a.end());
  CHECK(*least >= -0.1);
  CHECK(*least < -0.099);
  CHECK(*most <= 0.1);
  CHECK(*most > 0.099);
}

TEST_CASE("An updated layer is x Wᵀ + b + alpha / r (x Aᵀ) Bᵀ") {
  tg::Linear<double> layer(2, 3);
  layer.weight.set_value({{1, 2}, {3, 4}, {5, 6}});
  layer.bias.set_value({10, 20, 30});
  tg::add_low_rank(layer, 2, 6);
  layer.low_rank->A.set_value({{1, -1}, {2, 0}});
  layer.low_rank->B.set_value({{1, 0}, {0, 1}, {1, 1}});
  // x = (1, 2): x Aᵀ = (-1, 2), times Bᵀ = (-1, 2, 1), times 6 / 2 = (-3, 6, 3)
  check_close(layer(Array{{1, 2}}).value(), Array{{15 - 3, 31 + 6, 47 + 3}});
  tg::merge_low_rank(layer);
  CHECK_FALSE(layer.low_rank.has_value());
  check_close(layer.weight.value(), Array{{1 + 3, 2 - 3}, {3 + 6, 4}, {5 + 9, 6 - 3}});
  check_close(layer(Array{{1, 2}}).value(), Array{{12, 37, 50}});
}

TEST_CASE("Gradients of updates are right, also with frozen weights in bfloat16, which get none") {
  tg::manual_seed(2);
  for (const bool in_bfloat16 : {false, true}) {
    CAPTURE(in_bfloat16);
    Adapted model;
    tg::add_low_rank(model, 2, 3);
    train_a_little(model);
    if (in_bfloat16) tg::hold_in_bfloat16(model);
    CHECK(tg::named_parameters(model).size() == (in_bfloat16 ? 7 : 9));
    Parameter x(tg::normal<double>({5, 4}));
    auto named = tg::named_parameters(model);
    named.emplace_back("x", x);
    CHECK_GRADIENTS([&] { return model(x); }, named);
  }
}

TEST_CASE("A merged model computes the same, and can get a new update") {
  tg::manual_seed(3);
  Adapted model;
  const Tensor x(tg::normal<double>({5, 4}));
  tg::add_low_rank(model, 2, 3);
  train_a_little(model);
  const Array before = model(x).value();
  const Adapted copy = model;
  tg::merge_low_rank(model);
  check_close(model(x).value(), before);
  check_close(copy(x).value(), before);  // a copy has its own weights
  CHECK(tg::parameters(model).size() == 5);
  tg::merge_low_rank(model);  // nothing to merge
  tg::add_low_rank(model, 1, 1);
  check_close(model(x).value(), before);
}

TEST_CASE("A merged model has the same settings, names and file as before its updates, for every layer with a Linear") {
  const auto check = [](auto model) {
    const std::string before_updates = listing(model);
    const auto names = [&] {
      std::vector<std::string> all;
      for (const auto& [name, parameter] : tg::named_parameters(std::as_const(model))) all.push_back(name);
      return all;
    };
    const auto before = names();
    const std::size_t bytes = tg::save_bytes(model).size();
    for (const int times : {1, 2}) {
      CAPTURE(times);
      tg::add_low_rank(model, 2, 3);
      CHECK(listing(model).find("lora_alpha=3") != std::string::npos);
      tg::merge_low_rank(model);
      CHECK(listing(model) == before_updates);
      CHECK(names() == before);
      CHECK(tg::save_bytes(model).size() == bytes);
    }
  };
  check(tg::Linear<double>(4, 3));
  check(tg::MultiHeadAttention<double>(4, 2));
  check(tg::FeedForward<double>(4, 8, {.activation = tg::Activation::swiglu}));
  check(tg::TransformerBlock<double>(4, 2));
  check(Adapted());
  check(std::vector<Adapted>(2));
  check(std::map<std::string, tg::Linear<double>>{{"a", tg::Linear<double>(2, 2)}});
  check(std::optional<tg::Linear<double>>(tg::Linear<double>(2, 2)));
}

TEST_CASE("An update is saved and loaded with its layer, or alone") {
  tg::manual_seed(4);
  Adapted model, other;
  tg::add_low_rank(model, 2, 3);
  tg::add_low_rank(other, 2, 3);
  train_a_little(model);
  tg::load(other, tg::save_bytes(model));
  CHECK(other.second.low_rank->B.value() == model.second.low_rank->B.value());

  std::map<std::string, Parameter> updates;  // updates of a model with weights in bfloat16
  tg::hold_in_bfloat16(model);
  for (const auto& [name, parameter] : tg::named_parameters(model))
    if (name.find(".lora_") != name.npos) updates.emplace(name, *parameter);
  Adapted fresh;
  tg::add_low_rank(fresh, 2, 3);
  tg::hold_in_bfloat16(fresh);
  tg::load(fresh, tg::save_bytes(updates), {.allow_missing = {"*.weight", "*.bias"}});
  CHECK(updates.size() == 4);
  CHECK(fresh.second.low_rank->B.value() == model.second.low_rank->B.value());
  CHECK(fresh.second.weight.is_in_bfloat16());
}

TEST_CASE("A rank of 0 and an infinite alpha are refused") {
  Adapted model;
  CHECK_THROWS_WITH_AS(tg::add_low_rank(model, 0, 1), "[add_low_rank] expected a rank of at least 1, got 0",
                       std::invalid_argument);
  for (const double alpha : {std::nan(""), HUGE_VAL})
    CHECK_THROWS_AS(tg::add_low_rank(model, 2, alpha), std::invalid_argument);
}

TEST_CASE("A refused update or merge changes no layer and draws no number, whichever layer it is refused for") {
  using Layer = tg::Linear<double>;
  using Spoil = void (*)(Layer&);
  const auto check = [](const std::string& fault, bool merges, Spoil spoil) {
    for (const std::size_t spoiled : {0, 1, 2}) {
      INFO("fault = ", fault, ", merges = ", merges, ", spoiled = ", spoiled);
      std::vector<Layer> layers(3, Layer(4, 6));
      for (Layer& layer : layers) {
        if (!merges) break;
        tg::add_low_rank(layer, 2, 3);
        layer.low_rank->B.set_value(tg::normal<double>({6, 2}));
      }
      spoil(layers[spoiled]);
      const auto before = state_of(layers);
      tg::Generator generator(5);
      const tg::Generator unused = generator;
      const auto convert = [&] { merges ? tg::merge_low_rank(layers) : tg::add_low_rank(layers, 2, 3, generator); };
      CHECK_THROWS_AS(convert(), std::logic_error);  // or std::invalid_argument, which is one
      CHECK(state_of(layers) == before);
      CHECK(generator == unused);
    }
  };
  check("an update", false, [](Layer& layer) { tg::add_low_rank(layer, 1, 1); });
  for (const bool merges : {false, true}) {
    check("no weight", merges, [](Layer& layer) { layer.weight = {}; });
    check("a weight of one axis", merges, [](Layer& layer) { layer.weight = drawn({2}); });
    check("a weight of three axes", merges, [](Layer& layer) { layer.weight = drawn({6, 4, 1}); });
  }
  check("a weight in bfloat16", true, [](Layer& layer) { tg::hold_in_bfloat16(layer); });
  check("no A", true, [](Layer& layer) { layer.low_rank->A = {}; });
  check("no B", true, [](Layer& layer) { layer.low_rank->B = {}; });
  check("an A of one axis", true, [](Layer& layer) { layer.low_rank->A = drawn({2}); });
  check("an A of another width", true, [](Layer& layer) { layer.low_rank->A = drawn({2, 3}); });
  check("a B of three axes", true, [](Layer& layer) { layer.low_rank->B = drawn({6, 2, 1}); });
  check("a B of another rank", true, [](Layer& layer) { layer.low_rank->B = drawn({6, 1}); });
  check("a B of other rows", true, [](Layer& layer) { layer.low_rank->B = drawn({5, 2}); });
}
