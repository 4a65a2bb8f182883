// The page of a training step: its data, read back, equal the tape's numbers.
#include <tapegrad/engine/tape/internal/recording.hpp>
#include <tapegrad/inspect/page/internal/arrays.hpp>
#include <tapegrad/inspect/page/internal/step.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../operations/table.hpp"
#include "in_double.hpp"
#include "page_data.hpp"
#include "special_values.hpp"
#include "temporary_folder.hpp"

namespace {

using nlohmann::json;

constexpr tg::TapeOptions keeping{.keep_values = true};

// Decodes base64 of float32.
std::vector<float> decoded(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(digits.find(c));
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 255);
  }
  std::vector<float> numbers(bytes.size() / sizeof(float));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

template <class T> void check_array(const json& stored, const tg::Array<T>& array) {
  REQUIRE(stored.is_object());
  CHECK(stored["shape"] == json(std::vector<std::size_t>(array.shape().begin(), array.shape().end())));
  CHECK(decoded(stored["data"]) == std::vector<float>(array.begin(), array.end()));
}

template <class T> json stored(const tg::Array<T>& array, std::size_t most) {
  return json::parse(tg::detail::array_json(array, most).text());
}

json page_of(const tg::Tape& tape, const tg::PageOptions& options = {}, const tg::PageStep& told = {}) {
  const tg::detail::RecordedStep step{tape.recording(), told};
  return json::parse(tg::detail::page_json({&step, 1}, options).text());
}

json step_of(const tg::Tape& tape, const tg::PageOptions& options = {}, const tg::PageStep& told = {}) {
  return page_of(tape, options, told)["steps"][0];
}

// The first attention of a step, or null.
json attention_of(const json& step) {
  for (const json& node : step["nodes"])
    if (node.contains("attention")) return node["attention"];
  return json();
}

struct Classifier {
  tg::Embedding<> embedding{12, 8};
  tg::MultiHeadAttention<> attention{8, 2};
  tg::Linear<> head{8, 3};
  TAPEGRAD_FIELDS(embedding, attention, head)
};

}  // namespace

TEST_CASE("A page has the expression that finds each node") {
  Classifier model;
  tg::parameters(model);
  tg::Tape tape(keeping);
  const auto x = model.attention(model.embedding(tg::IntArray{{1, 2, 3}}));
  auto logits = model.head(x);
  logits.set_name("logits");
  tg::Tensor<float> factors(tg::Array<float>{1, 2, 3}), shifts(tg::Array<float>{0, 1, 0});
  factors.set_name("factors");
  tg::sum(model.head(tg::exp(x)) * (logits * factors + shifts)).backward();

  std::set<std::string> found;
  std::size_t number = 0;
  const json step = step_of(tape);
  for (const json& node : step["nodes"]) {
    const std::string expression = node["find"];
    CAPTURE(expression);
    const std::string find = "tape.find<float>(\"", nodes = "tape.nodes<float>()[";
    if (expression.starts_with(find))
      check_array(node["value"],
                  tape.find<float>(expression.substr(find.size(), expression.size() - find.size() - 2)).value());
    else if (node["kind"] != "constant")
      CHECK(expression == nodes + std::to_string(number) + "]");
    else
      CHECK(expression.empty());
    number += node["kind"] != "constant";
    if (!expression.empty()) CHECK(found.insert(expression).second);
  }
  for (const char* path : {"logits", "factors", "embedding", "attention.q_proj", "attention.out_proj", "head.weight"})
    CHECK(found.contains("tape.find<float>(\"" + std::string(path) + "\")"));
  CHECK_FALSE(found.contains("tape.find<float>(\"head\")"));  // called twice

  logits = tg::exp(x);
  logits.set_name("later");
  CHECK(page::named(step_of(tape), "later")["find"] == "");
}

TEST_CASE("A page's expressions escape names") {
  tg::Tape tape(keeping);
  const Parameter w(Array{1, 2});
  auto x = tg::exp(w);
  x.set_name("a \\ and a \"");
  CHECK(page::named(step_of(tape), "a \\ and a \"")["find"] == R"(tape.find<double>("a \\ and a \""))");
}

TEST_CASE("A page has the tape's values and gradients, formulas, layers and loss") {
  Classifier model;
  tg::parameters(model);
  tg::Tape tape(keeping);
  tg::Tensor<float> x = model.attention(model.embedding(tg::IntArray{{1, 2, 3}, {4, 5, 6}}));
  tg::Tensor<float> logits = model.head(tg::mean(x, {1}));
  logits.set_name("logits");
  logits.retain_grad();
  tg::cross_entropy(logits, tg::IntArray{0, 2}).backward();

  const json step = step_of(tape);
  for (const auto& entry : tg::named_parameters(model)) {
    const std::string& name = entry.first;
    const auto& parameter = entry.second;
    CAPTURE(name);
    const json& node = page::named(step, name);
    CHECK(node["kind"] == "parameter");
    CHECK(node["reached"] == true);
    check_array(node["value"], parameter->value());
    check_array(node["gradient"], parameter->grad());
  }
  const json& node = page::named(step, "logits");
  check_array(node["value"], logits.value());
  check_array(node["gradient"], logits.grad());
  CHECK(node["kind"] == "operation");
  CHECK(node["operation"] == "linear");
  CHECK(node["formula"] == "y = x Wᵀ + b");
  CHECK(node["rules"] == json{"dx = dy W", "dW = dyᵀ x", "db = Σ dy"});
  CHECK(node["layer"] == "head");
  const json& weight = step["nodes"][node["inputs"][1].get<std::size_t>()];
  CHECK(weight["name"] == "head.weight");
  CHECK(step["nodes"][step["loss"].get<std::size_t>()]["operation"] == "cross_entropy");
}

TEST_CASE("Attention weights are computed for the page, with their gradient and the unmasked positions") {
  tg::manual_seed(5);
  std::size_t num_kv_heads = 2;
  SUBCASE("keys and values for each head") {}
  SUBCASE("keys and values shared by heads") { num_kv_heads = 1; }
  tg::MultiHeadAttention<double> layer(8, 2, {.num_kv_heads = num_kv_heads});
  const auto mask = tg::AttentionMask::causal() &
                    tg::AttentionMask::key_padding({{true, true, true}, {true, true, false}}) &
                    tg::AttentionMask::additive({{0, 0, 0}, {-1000, 0, 0}, {0, 0, 0}});  // allowed, with weight 0
  const Tensor x(tg::normal<double>({2, 3, 8})), factors(tg::normal<double>({2, 3, 8}));
  const auto made_by = [&](bool composed) {
    tg::Tape tape(keeping);
    auto [y, weights] = composed ? layer.with_weights(x, x, x, mask) : std::pair(layer(x, mask), Tensor());
    if (composed) weights.retain_grad();
    tg::sum(y * factors).backward();
    if (composed) return json{{"weights", stored(weights.value(), 1000)}, {"gradient", stored(weights.grad(), 1000)}};
    return attention_of(step_of(tape));
  };
  const json made = made_by(false), expected = made_by(true);
  REQUIRE(made.is_object());
  for (const char* key : {"weights", "gradient"}) {
    CHECK(made[key]["shape"] == json{2, 2, 3, 3});
    const std::vector<float> actual = decoded(made[key]["data"]), wanted = decoded(expected[key]["data"]);
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(actual[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
  }
  const std::vector<float> causal{1, 0, 0, 1, 1, 0, 1, 1, 1}, padded{1, 0, 0, 1, 1, 0, 1, 1, 0};
  std::vector<float> allowed;
  for (const auto& head : {causal, causal, padded, padded}) allowed.insert(allowed.end(), head.begin(), head.end());
  CHECK(decoded(made["allowed"]["data"]) == allowed);

  layer.dropout = tg::Dropout(0.5);
  CHECK(made_by(false)["gradient"].is_null());
}

TEST_CASE("A page has each operation's arguments, with masks as arrays") {
  const Parameter w(Array{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  tg::Tape tape(keeping);
  tg::sum(tg::softmax(tg::masked_fill(w, tg::BoolArray{{true, false, false}}, -9.0), -1)).backward();
  const json nodes = step_of(tape)["nodes"];
  const json& filled = nodes[2]["arguments"];  // node 1 is the constant -9
  REQUIRE(filled.size() == 2);
  CHECK(filled[0]["name"] == "mask");
  CHECK(filled[0]["text"] == "(1, 3)");
  CHECK(decoded(filled[0]["value"]["data"]) == std::vector<float>{1, 0, 0});
  CHECK(filled[1] == json{{"name", "value"}, {"text", "-9"}});
  CHECK(nodes[3]["arguments"] == json::array({{{"name", "axis"}, {"text", "-1"}}}));
  CHECK_FALSE(nodes[0].contains("arguments"));
}

TEST_CASE("An operation is in the layer that runs it, with frozen weights and with a parameter as input") {
  Classifier model;
  tg::parameters(model);
  model.attention.q_proj.weight.set_requires_grad(false);
  model.attention.q_proj.bias.set_requires_grad(false);
  tg::Parameter<float> x(tg::normal<float>({2, 8})), scale(tg::normal<float>({3}));
  x.set_name("X"), scale.set_name("scale");
  tg::Tape tape(keeping);
  tg::Tensor<float> logits = model.head(x), scaled = scale * scale;
  tg::Tensor<float> q = model.attention.q_proj(model.embedding(tg::IntArray{{1, 2}}));
  logits.set_name("logits"), scaled.set_name("scaled"), q.set_name("q");
  const tg::Tensor<float> of_q = model.head(q);
  const json step = step_of(tape);
  CHECK(page::named(step, "logits")["layer"] == "head");
  CHECK(page::named(step, "scaled")["layer"] == "");
  CHECK(page::named(step, "attention.q_proj.weight")["kind"] == "constant");
  CHECK(page::named(step, "q")["layer"] == "attention.q_proj");
}

TEST_CASE("Constants are nodes at their first use, and undefined inputs and their rules are omitted") {
  const Parameter w(Array{{1, 2}});
  const Tensor constant(Array{{3, 4}});
  tg::Tape tape(keeping);
  const Tensor x = w + constant, weight = w * 2.0, y = tg::linear(x, weight, Tensor()), z = y * constant;
  const json nodes = step_of(tape)["nodes"];
  REQUIRE(nodes.size() == 6);  // w, the constant, x, weight, y, z
  CHECK(nodes[1]["kind"] == "constant");
  check_array(nodes[1]["value"], constant.value());
  CHECK(nodes[1]["gradient"].is_null());
  CHECK(nodes[2]["inputs"] == json{0, 1});
  CHECK(nodes[4]["inputs"] == json{2, 3});
  CHECK(nodes[4]["rules"] == json{"dx = dy W", "dW = dyᵀ x"});
  CHECK(nodes[5]["inputs"] == json{4, 1});
}

TEST_CASE("Attention's queries and keys have the tokens of the innermost layer with tokens") {
  Classifier model;
  tg::parameters(model);
  tg::Tape tape(keeping);
  (void)model.head(model.attention(model.embedding(tg::IntArray{{1, 2, 3}, {4, 5, 0}})));
  using Lists = std::vector<std::vector<std::string>>;
  const Lists of_all{{"the", "river", "bank"}}, of_each{{"the", "river", "bank"}, {"a", "dog", "[pad]"}};
  const auto attention_with = [&](const std::map<std::string, tg::PageTokens>& tokens,
                                  const std::map<std::string, tg::PageTokens>& of_step = {}) {
    return attention_of(step_of(tape, {.tokens = tokens}, {.tokens = of_step}));
  };
  json attention = attention_with({{"", {of_all, of_all}}, {"attention", {of_each, of_all}}, {"att", {{{"no"}}, {}}}});
  CHECK(attention["queries"] == json(of_each));
  CHECK(attention["keys"] == json(of_all));
  attention = attention_with({{"attention", {of_each, of_each}}}, {{"", {of_all, {}}}});  // the step's labels win
  CHECK(attention["queries"] == json(of_all));
  CHECK_FALSE(attention.contains("keys"));
  CHECK_FALSE(attention_with({{"head", {of_all, of_all}}}).contains("queries"));
  for (const Lists& wrong : {Lists{{"the", "river"}}, Lists(3, of_all[0]), Lists{of_all[0], {"a", "dog"}}})
    CHECK_THROWS_WITH_AS(attention_with({{"", {wrong, {}}}}), Contains("[save_page]"), std::invalid_argument);
}

TEST_CASE("A page has the contributions and gradients of a value read twice, null where nothing arrived") {
  const Parameter w(Array{1, 2}), unused(Array{1, 2});
  tg::Tape tape(keeping);
  const Tensor y = w * w, aside = unused * 2.0;
  y.backward(Array{10, 100});
  const json step = step_of(tape);
  const json& nodes = step["nodes"];
  check_array(nodes[1]["contributions"][0], Array{10, 200});
  check_array(nodes[1]["contributions"][1], Array{10, 200});
  check_array(nodes[0]["gradient"], Array{20, 400});
  CHECK(step["loss"] == 1);
  CHECK(nodes[2]["reached"] == false);
  CHECK(nodes[2]["gradient"].is_null());
  CHECK_FALSE(nodes[3].contains("contributions"));
}

TEST_CASE("For every operation, the page has the same contributions with and without unswept readers of its inputs") {
  for (const operations::Sample& sample : operations::table().samples) {
    INFO(sample.title());
    const auto contributions = [&](bool with_unswept) {
      std::vector<Parameter> x;
      for (const operations::Draw& input : sample.inputs) x.emplace_back(operations::numbers<double>(input, x.size()));
      tg::Tape tape(keeping);
      const auto read = [&] {
        for (std::size_t i = 0; with_unswept && i < x.size(); ++i) tg::exp(x[i]).set_name("unswept");
      };
      read();
      tg::manual_seed(0);
      const Tensor loss = tg::sum(sample.in_double(operations::Inputs<double>(x.begin(), x.end())));
      read();
      if (loss.requires_grad()) loss.backward();
      std::vector<json> all;
      const json step = step_of(tape);
      for (const json& node : step["nodes"])
        if (node["kind"] == "operation" && node["name"] != "unswept")
          all.push_back(node.value("contributions", json()));
      return all;
    };
    CHECK(contributions(true) == contributions(false));
  }
}

TEST_CASE("A contribution equal to the whole gradient is not written twice") {
  const Parameter w(Array{1, 2});
  tg::Tape tape(keeping);
  Tensor y = w * 2.0;
  tg::sum(y).backward();
  const json first = step_of(tape);
  REQUIRE(first["nodes"].size() == 3);
  for (const json& node : first["nodes"]) CHECK_FALSE(node.contains("contributions"));

  Tensor z = w * 2.0;
  z.register_hook([](auto& gradient) { gradient *= 10.0; });
  tg::sum(z).backward();
  const json step = step_of(tape);
  check_array(step["nodes"].back()["contributions"][0], Array{1, 1});  // z's gradient is the hook's result
}

TEST_CASE("Several steps are on one page, also of tapes that have ended") {
  const TemporaryFolder folder;
  {
    Parameter w(Array{1, 2});
    w.set_name("w");
    tg::Page page({.title = "Two steps", .axes = {{"w", {{"of the page"}}}}});
    for (int step = 0; step < 2; ++step) {
      tg::Tape tape(keeping);
      tg::sum(w * w).backward();
      page.add(tape, {.label = "step " + std::to_string(step)});
      if (step == 1) page.add(tape, {.label = "again", .axes = {{"w", {{"of the step"}}}}});
      w.mutable_value() += 1.0;
      w.zero_grad();
    }
    const tg::Tape keeps_nothing;
    CHECK_THROWS_WITH_AS(page.add(keeps_nothing), Contains("keep_values"), std::logic_error);
    CHECK_THROWS_WITH_AS(tg::Page().save(folder / "empty.html"),
                         "[save_page] expected a page with at least one step, got none; call add() first",
                         std::logic_error);
    page.save(folder / "page.html");
  }
  const json steps = page_data(folder.read("page.html"))["steps"];
  REQUIRE(steps.size() == 3);
  CHECK(steps[0]["label"] == "step 0");
  check_array(page::named(steps[0], "w")["value"], Array{1, 2});
  check_array(page::named(steps[0], "w")["gradient"], Array{2, 4});
  check_array(page::named(steps[1], "w")["gradient"], Array{4, 6});
  CHECK(page::named(steps[1], "w")["axis_names"] == json::array({"of the page"}));
  CHECK(page::named(steps[2], "w")["axis_names"] == json::array({"of the step"}));
}

TEST_CASE("Large arrays are averaged, with statistics over all numbers") {
  Array x({3, 5}, 0.0);
  for (std::size_t i = 0; i < 15; ++i) x.data()[i] = static_cast<double>(i);
  const json averaged = stored(x, 4);
  CHECK(averaged["pooled"] == json{2, 4});
  CHECK(averaged["shape"] == json{2, 2});
  CHECK(decoded(averaged["data"]) == std::vector<float>{4, 6.5, 11.5, 14});
  const json& statistics = averaged["statistics"];
  CHECK(statistics["count"] == 15);
  CHECK(statistics["least"] == 0);
  CHECK(statistics["largest"] == 14);
  CHECK(statistics["mean"] == doctest::Approx(7));
  CHECK(statistics["deviation"] == doctest::Approx(std::sqrt(56.0 / 3)));
  CHECK(statistics["norm"] == doctest::Approx(std::sqrt(1015.0)));
  CHECK(statistics["zeros"] == 1);
  CHECK_FALSE(stored(x, 15).contains("pooled"));
  check_array(stored(x, 15), x);
  check_array(stored(Array(tg::Shape{}, 2.5), 1), Array(tg::Shape{}, 2.5));
  check_array(stored(Array(tg::Shape{0, 3}), 1), Array(tg::Shape{0, 3}));
}

TEST_CASE("NaN and infinity are counted separately from the other statistics") {
  const json some = stored(Array{1, kNaN, -kInfinity, 3, kInfinity}, 100)["statistics"];
  CHECK(some["nan"] == 1);
  CHECK(some["infinite"] == 2);
  CHECK(some["mean"] == 2);
  CHECK(some["largest"] == 3);
  const json none = stored(Array{kNaN}, 100)["statistics"];
  for (const char* key : {"least", "largest", "mean", "deviation", "norm"}) CHECK(none[key].is_null());
}

TEST_CASE("Statistics are right for numbers whose squares overflow or underflow a double") {
  for (const double unit : {1e-300, 1e-200, 1e200, 1e300}) {
    const json statistics = stored(Array{3 * unit, -4 * unit, 0}, 100)["statistics"];
    CHECK(statistics["norm"] == doctest::Approx(5 * unit).epsilon(1e-12));
    CHECK(statistics["mean"] == doctest::Approx(-unit / 3).epsilon(1e-12));
    CHECK(statistics["deviation"] == doctest::Approx(unit * std::sqrt(74.0 / 9)).epsilon(1e-12));
    CHECK(statistics["least"] == -4 * unit);
    CHECK(statistics["zeros"] == 1);
  }
  const double denormal = std::numeric_limits<double>::denorm_min();
  CHECK(stored(Array{denormal}, 1)["statistics"]["norm"] == denormal);
  CHECK(stored(Array({4}, std::numeric_limits<double>::max() / 2), 9)["statistics"]["mean"] ==
        std::numeric_limits<double>::max() / 2);
}

TEST_CASE("The bytes of a page's numbers are limited, and omissions are reported") {
  const Parameter w(Array({64, 64}, 1.0)), small(Array{1, 2});
  tg::Tape tape(keeping);
  tg::sum(tg::exp(w) * 2.0).backward();
  const auto numbers_in = [&](std::size_t largest) {
    const json page = page_of(tape, {.largest = largest});
    CHECK(page["left_out"].size() == (largest < 100'000 ? 1 : 0));
    return page.dump().size();
  };
  CHECK(numbers_in(1'000'000) > 100'000);
  CHECK(numbers_in(20'000) < 30'000);
  CHECK(numbers_in(2'000) < 12'000);
}

TEST_CASE("Axes of parameters and constants have names and labels of matching length") {
  Parameter w(Array{{1, 2, 3}, {4, 5, 6}});
  Tensor target(Array{{3, 4, 5}});
  w.set_name("w"), target.set_name("target");
  tg::Tape tape(keeping);
  const Tensor y = w * target;
  const json constant =
      page::named(step_of(tape, {.axes = {{"target", {{"one"}, {"class", {"cat", "dog", "fox"}}}}}}), "target");
  CHECK(constant["kind"] == "constant");
  CHECK(constant["axes"] == json::parse(R"([null, ["cat", "dog", "fox"]])"));
  const json node = page::named(step_of(tape, {.axes = {{"w", {{"row"}, {"token", {"the", "river", "bank"}}}}}}), "w");
  CHECK(node["axis_names"] == json{"row", "token"});
  CHECK(node["axes"] == json::parse(R"([null, ["the", "river", "bank"]])"));
  CHECK_THROWS_WITH_AS(step_of(tape, {.axes = {{"w", {{"row"}}}}}), Contains("[save_page]"), std::invalid_argument);
  CHECK_THROWS_AS(step_of(tape, {.axes = {{"w", {{"row", {"one"}}, {"token"}}}}}), std::invalid_argument);
}

TEST_CASE("A layer's axes apply to its unnamed values of the same extents, and its tokens to attention") {
  Classifier model;
  tg::parameters(model);
  tg::Tape tape(keeping);
  tg::Tensor<float> x = model.attention(model.embedding(tg::IntArray{{1, 2, 3}}));
  x.set_name("x");
  tg::sum(model.head(tg::mean(x, {1}))).backward();
  const tg::PageAxis batch{"batch"}, token{"token", {"the", "river", "bank"}}, key{"key", {"a", "b", "c"}}, width{};
  const auto page_with = [&](const tg::PageAxes& axes) { return step_of(tape, {.axes = axes}); };
  const auto made_by = [](const json& step, const std::string& operation, const std::string& layer) {
    for (const json& node : step["nodes"])
      if (node["operation"] == operation && node["layer"] == layer) return node;
    FAIL("no " << operation << " in " << layer);
    return json();
  };

  const json step = page_with({{"", {batch, token, width}}, {"attention.k_proj", {batch, key, width}}});
  const json tokens = json::parse(R"([null, ["the", "river", "bank"], null])"), words = tokens[1], keys{"a", "b", "c"};
  CHECK(made_by(step, "embedding", "embedding")["axes"] == tokens);
  CHECK(made_by(step, "linear", "attention.q_proj")["axes"] == tokens);
  CHECK(made_by(step, "linear", "attention.k_proj")["axes"][1] == keys);
  const json heads = made_by(step, "multi_head_attention", "attention.heads");
  CHECK(heads["axes"] == tokens);
  CHECK(heads["attention"]["queries"] == json::array({words}));
  CHECK(heads["attention"]["keys"] == json::array({keys}));
  CHECK_FALSE(page::named(step, "x").contains("axes"));
  CHECK_FALSE(made_by(step, "mean", "").contains("axes"));
  CHECK_FALSE(page::named(step, "head.weight").contains("axes"));

  const tg::PageAxis other{"token", {"of another length"}};
  const json outer = page_with({{"", {batch, token, width}}, {"attention.q_proj", {batch, other, width}}});
  CHECK(made_by(outer, "linear", "attention.q_proj")["axes"] == tokens);  // the inner axes do not fit

  const json bare =
      made_by(page_with({{"head", {batch, width}}}), "multi_head_attention", "attention.heads")["attention"];
  CHECK_FALSE(bare.contains("queries"));
  CHECK_FALSE(bare.contains("keys"));
}

TEST_CASE("Attention takes its tokens from the second-to-last axis of queries and keys of any number of axes") {
  const auto check = [](const std::vector<std::size_t>& leading, auto attend) {
    CAPTURE(leading.size());
    const auto labelled = [&](const std::string& name, std::size_t rows, tg::PageAxes& axes) {
      tg::Shape shape(leading.begin(), leading.end());
      shape.push_back(rows);
      shape.push_back(2);
      axes[name].resize(shape.size());
      for (std::size_t i = 0; i < rows; ++i) axes[name][leading.size()].labels.push_back(name + std::to_string(i));
      Parameter parameter(tg::normal<double>(shape));
      parameter.set_name(name);
      return parameter;
    };
    tg::PageAxes axes;
    const Parameter q = labelled("q", 3, axes), k = labelled("k", 4, axes), v = labelled("v", 4, axes);
    tg::Tape tape(keeping);
    tg::sum(attend(q, k, v)).backward();
    const json attention = step_of(tape, {.axes = axes})["nodes"][3]["attention"];
    CHECK(attention["queries"] == json::array({axes["q"][leading.size()].labels}));
    CHECK(attention["keys"] == json::array({axes["k"][leading.size()].labels}));
  };
  const auto one = [](const auto& q, const auto& k, const auto& v) {
    return tg::scaled_dot_product_attention<double>(q, k, v);
  };
  check({}, one);
  check({2}, one);
  check({2, 5}, one);
  check({5, 2}, one);
  check({2}, [](const auto& q, const auto& k, const auto& v) { return tg::multi_head_attention<double>(q, k, v, 2); });
}

TEST_CASE("Names, titles and labels appear unchanged, whatever they contain") {
  const std::string evil = "</script><img src=x onerror=alert(1)> & \"{{data}}\" '{{title}}' \xff";
  Parameter w(Array{1, 2});
  w.set_name(evil);
  tg::Tape tape(keeping);
  tg::sum(w * 2.0).backward();
  const TemporaryFolder folder;
  tg::save_page(tape, folder / "page.html", {.title = evil, .axes = {{evil, {{evil, {evil, evil}}}}}});
  const std::string page = folder.read("page.html");
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt; &amp; &quot;{{data}}&quot;") != std::string::npos);
  const json data = page_data(page);
  const std::string shown = evil.substr(0, evil.size() - 1) + "\uFFFD";  // invalid UTF-8 is replaced
  CHECK(data["title"] == shown);
  CHECK(data["steps"][0]["nodes"][0]["name"] == shown);
  CHECK(data["steps"][0]["nodes"][0]["axes"][0][0] == shown);
}

TEST_CASE("After a shape error a page shows the operations before it") {
  Classifier model;
  tg::parameters(model);
  tg::Tape tape(keeping);
  const auto x = tg::transpose(model.embedding(tg::IntArray{{1, 2, 3}}), 1, 2);  // (1, 8, 3)
  CHECK_THROWS_WITH_AS(model.head(x), Contains("[linear]"), std::invalid_argument);
  const json step = step_of(tape);
  CHECK(step["loss"] == -1);
  CHECK(step["nodes"].back()["operation"] == "transpose");
  check_array(step["nodes"].back()["value"], x.value());
  check_array(page::named(step, "embedding.weight")["value"], model.embedding.weight.value());
}

TEST_CASE("A page is one self-contained file, and is refused without kept values") {
  const Parameter w(Array{1, 2});
  const TemporaryFolder folder;
  folder.write("page.html", "before");
  {
    tg::Tape tape;
    tg::sum(w * 2.0).backward();
    CHECK_THROWS_WITH_AS(tg::save_page(tape, folder / "page.html"), Contains("[save_page]"), std::logic_error);
    CHECK_THROWS_WITH_AS(tg::save_page(tape, folder / "page.html"), Contains("keep_values"), std::logic_error);
    CHECK(folder.read("page.html") == "before");
  }
  tg::Tape tape(keeping);
  tg::save_page(tape, folder / "page.html");  // still empty
  tg::sum(w * 2.0).backward();
  tg::save_page(tape, folder / "page.html");
  const std::string page = folder.read("page.html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.find("/*{{") == std::string::npos);
  for (const char* outside : {"<script src", "<link", "@import", "fetch("})
    CHECK(page.find(outside) == std::string::npos);
  CHECK(folder.files() == 1);
  CHECK_THROWS_AS(tg::save_page(tape, folder / "no/page.html"), std::runtime_error);
}

// ---- the size of a page -------------------------------------------------------------------------------------------

namespace {

// The bytes of all numbers in any part of a page.
std::size_t bytes_of_numbers(const json& part) {
  if (part.is_object() && part.contains("data")) return part["data"].get_ref<const std::string&>().size();
  std::size_t bytes = 0;
  if (part.is_structured())
    for (const json& inner : part) bytes += bytes_of_numbers(inner);
  return bytes;
}

// The arrays in any part of a page.
struct Arrays {
  std::size_t all = 0, averaged = 0, largest = 0;  // largest: numbers stored of an averaged one

  void add(const json& part) {
    if (part.is_object() && part.contains("data")) {
      ++all;
      if (!part.contains("pooled")) return;
      ++averaged;
      largest = std::max(largest, bytes_of_numbers(part) / 4 * 3 / sizeof(float));
    } else if (part.is_structured()) {
      for (const json& inner : part) add(inner);
    }
  }
};

struct Gpt {
  tg::Embedding<> token{100, 128}, position{64, 128};
  std::vector<tg::TransformerBlock<>> blocks = std::vector(4, tg::TransformerBlock<>(128, 4));
  tg::Linear<> head{128, 100};
  TAPEGRAD_FIELDS(token, position, blocks, head)

  tg::Tensor<float> operator()(const tg::IntArray& ids, const tg::IntArray& positions) const {
    tg::Tensor<float> x = token(ids) + position(positions);
    for (const auto& block : blocks) x = block(x, tg::AttentionMask::causal());
    return head(x);
  }
};

// Counts the attention arrays on the page: those averaged, and all.
struct Attention {
  std::size_t averaged = 0, all = 0;
  explicit Attention(const json& page) {
    for (const json& node : page["steps"][0]["nodes"])
      if (node.contains("attention"))
        for (const char* of : {"weights", "gradient", "allowed"}) {
          averaged += node["attention"][of].contains("pooled");
          ++all;
        }
  }
};

}  // namespace

TEST_CASE("The attention of a small GPT is complete on a page of the default size") {
  Gpt model;
  tg::parameters(model);
  tg::Tape tape(keeping);
  tg::IntArray ids(tg::Shape{1, 64});
  for (int i = 0; i < 64; ++i) ids(0, i) = i;
  tg::sum(model(ids, ids)).backward();
  const json page = page_of(tape);
  const Attention attention(page);
  CHECK(attention.all == 12);
  CHECK(attention.averaged == 0);
  const std::size_t bytes = bytes_of_numbers(page);
  CHECK(bytes <= 8'000'000);
  CHECK(bytes > 4'000'000);
  CHECK(page["left_out"].size() == 1);
}

TEST_CASE("Attention beyond half of the space is averaged unless the rest leaves space") {
  const Parameter q(Array({1, 64, 4}, 0.5)), k(Array({1, 64, 4}, 0.5)), v(Array({1, 64, 4}, 0.5));
  tg::Tape tape(keeping);
  tg::sum(tg::multi_head_attention<double>(q, k, v, 2)).backward();  // 3 x 2 x 64 x 64 numbers of attention: 131 kB
  CHECK(Attention(page_of(tape, {.largest = 150'000})).averaged == 0);
  const json page = page_of(tape, {.largest = 50'000});
  CHECK(Attention(page).averaged == 3);
  CHECK(bytes_of_numbers(page) <= 50'000);
}

TEST_CASE("A missing gradient of attention weights takes no space") {
  const Tensor q(Array({1, 64, 4}, 0.5));
  const Parameter v(Array({1, 64, 4}, 0.5));
  tg::Tape tape(keeping);
  (void)tg::multi_head_attention<double>(q, q, v, 2);  // without backward: 2 x 2 x 64 x 64 numbers of attention, 87 kB
  CHECK(Attention(page_of(tape, {.largest = 95'000})).averaged == 0);
}

TEST_CASE("A constant read by many operations is stored once") {
  const Parameter w(Array({1}, 2.0));
  const Tensor x(Array({64, 64}, 1.0));  // 22 kB
  tg::Tape tape(keeping);
  Tensor y = w;
  for (int i = 0; i < 10; ++i) y = y * tg::sum(w * x);  // w x and its gradient, 22 kB each
  CHECK(page_of(tape, {.largest = 300'000})["left_out"].empty());
}

TEST_CASE("Numeric gradients count in the size, and averaging them is reported") {
  Parameter w(Array({64, 64}, 1.0));
  w.set_name("w");
  tg::Tape tape(keeping);
  const Tensor y = tg::sum(w);
  const tg::PageStep told{.numeric = {{"w", Array({64, 64}, 1.0)}}};
  const json page = page_of(tape, {.largest = 30'000}, told);  // without this, w (22 kB) fits whole
  CHECK(bytes_of_numbers(page) <= 30'000);
  CHECK(page["left_out"] == json{"2 of 3 arrays are averaged down to at most 2048 numbers each."});
}

TEST_CASE("The largest array left and the number of averaged ones are those of all arrays of all steps, in any order") {
  const std::vector<tg::Shape> shapes{{40, 40}, {7, 9}, {300}, {1, 2000}, {5, 5, 5}, {2}};
  for (const bool reversed : {false, true})
    for (const std::size_t largest : {500, 2'000, 5'000, 20'000, 60'000}) {
      CAPTURE(reversed);
      CAPTURE(largest);
      std::vector<tg::detail::RecordedStep> steps;
      for (const bool in_second : {reversed, !reversed}) {
        const tg::Tape tape(keeping);
        for (std::size_t i = 0; i < shapes.size(); ++i) {
          const Parameter w(Array(shapes[reversed ? shapes.size() - 1 - i : i], 0.5));
          if (in_second == (i % 2 == 1)) tg::sum(tg::exp(w)).backward();
        }
        steps.push_back({tape.recording(), {}});
      }
      const json page = json::parse(tg::detail::page_json(steps, {.largest = largest}).text());
      Arrays arrays;
      arrays.add(page["steps"]);
      const std::string expected = std::to_string(arrays.averaged) + " of " + std::to_string(arrays.all) +
                                   " arrays are averaged down to at most " + std::to_string(arrays.largest) +
                                   " numbers each.";
      CHECK(page["left_out"] == (arrays.averaged == 0 ? json::array() : json::array({expected})));
    }
}
