// Questions to a tape: find, find_all, nodes.
#include <tapegrad/testing.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "in_double.hpp"

using Recorded = tg::Recorded<double>;

namespace {

struct Recordable {
  tg::Embedding<double> embedding{12, 8};
  std::vector<tg::TransformerBlock<double>> blocks;
  tg::Linear<double> head{8, 3};
  TAPEGRAD_FIELDS(embedding, blocks, head)

  explicit Recordable(double dropout = 0) {
    for (int i = 0; i < 2; ++i) blocks.push_back({8, 2, {.attention_dropout = dropout}});
    tg::parameters(*this);
  }

  Tensor operator()(const tg::IntArray& ids) const {
    Tensor x = embedding(ids);
    for (const auto& block : blocks) x = block(x, tg::AttentionMask::causal());
    Tensor pooled = tg::mean(x, {1});
    pooled.set_name("pooled");
    return head(pooled);
  }
};

const tg::IntArray ids{{1, 2, 3, 0}, {4, 5, 0, 0}}, labels{0, 2};
constexpr tg::TapeOptions kKeeping{.keep_values = true};

std::vector<std::string> names_of(const std::vector<Recorded>& nodes) {
  std::vector<std::string> names;
  for (const Recorded& node : nodes) names.push_back(node.operation());
  return names;
}

}  // namespace

TEST_CASE("A layer's path finds its last operation, at any depth") {
  const Recordable model;
  const tg::Tape tape(kKeeping);
  tg::cross_entropy(model(ids), labels).backward();
  const std::pair<const char*, const char*> cases[] = {{"embedding", "embedding"},
                                                       {"blocks.0", "add"},
                                                       {"blocks.1.norm1", "layer_norm"},
                                                       {"blocks.1.attention.v_proj", "linear"},
                                                       {"blocks.1.attention.heads", "multi_head_attention"},
                                                       {"blocks.1.attention", "linear"},
                                                       {"blocks.0.feed_forward", "linear"},
                                                       {"pooled", "mean"},
                                                       {"head", "linear"},
                                                       {"head.bias", "parameter"}};
  for (const auto& entry : cases)
    CHECK_MESSAGE(tape.find<double>(entry.first).operation() == entry.second, entry.first);
  CHECK(tape.find<double>("blocks.1.attention").layer() == "blocks.1.attention");
  CHECK(tape.find<double>("pooled").layer() == "");
  CHECK(tape.find<double>("head.bias").layer() == "head");
  const auto arguments = tape.find<double>("blocks.0.norm1").arguments();
  REQUIRE(arguments.size() > 1);
  CHECK(arguments[1].name + '=' + arguments[1].text() == "eps=1e-05");
  CHECK_CLOSE(tape.find<double>("blocks.1.attention").value(), tape.find<double>("blocks.1.attention.out_proj").value(),
              0);
}

TEST_CASE("A node shows what was recorded, and the gradients of the last backward pass") {
  Recordable model;
  std::optional<Recorded> head;
  {
    const tg::Tape tape(kKeeping);
    Tensor logits = model(ids);
    head = tape.find<double>("head");
    CHECK_FALSE(head->has_grad());
    CHECK_THROWS_WITH_AS(head->grad(), Contains("[grad] expected a gradient"), std::logic_error);
    CHECK(head->contributions().empty());
    logits.retain_grad();
    tg::cross_entropy(logits, labels).backward(tg::retain_graph);
    CHECK_CLOSE(head->grad(), logits.grad(), 0);
    (2.0 * tg::cross_entropy(logits, labels)).backward();
    CHECK_CLOSE(head->grad() * 1.5, logits.grad());
    CHECK_CLOSE(head->value(), logits, 0);
  }
  // After the tape.
  CHECK(head->formula() == "y = x Wᵀ + b; dx = dy W; dW = dyᵀ x; db = Σ dy");
  CHECK(names_of(head->inputs()) == std::vector<std::string>{"mean", "parameter", "parameter"});
  CHECK(head->inputs()[1].is_parameter());
  CHECK_CLOSE(head->inputs()[1].value(), model.head.weight, 0);
  REQUIRE(head->contributions().size() == 1);
  CHECK(head->contributions()[0].reader.operation() == "cross_entropy");
  CHECK_CLOSE(head->contributions()[0].gradient, head->grad(), 0);
}

TEST_CASE("A gradient is the sum of the contributions of its readers") {
  const Parameter x(Array{1.0, 2.0});
  const tg::Tape tape(kKeeping);
  Tensor y = x * 2.0;
  y.set_name("y");
  const Tensor square = y * y, e = tg::exp(y);
  tg::sum(square + e).backward();
  const auto parts = tape.find<double>("y").contributions();
  REQUIRE(parts.size() == 3);  // both inputs of the product
  CHECK(parts[1].input == 1);
  CHECK(parts[2].reader.operation() == "exp");
  CHECK_CLOSE(parts[0].gradient + parts[1].gradient, {4.0, 8.0});
  CHECK_CLOSE(parts[0].gradient + parts[1].gradient + parts[2].gradient, tape.find<double>("y").grad());
}

TEST_CASE("Constants, frozen parameters and undefined inputs are inputs or left out") {
  Recordable model;
  model.head.weight.set_requires_grad(false);
  const tg::Tape tape(kKeeping);
  tg::sum(tg::linear(model.head.bias * Array{1.0, 2.0, 3.0}, Tensor(Array(tg::Shape{2, 3}, 1.0)), Tensor())).backward();
  const auto inputs = tape.nodes<double>()[2].inputs();
  CHECK(names_of(inputs) == std::vector<std::string>{"mul", "constant"});
  CHECK(inputs[1].formula() == "");
  CHECK(inputs[1].arguments().empty());
  CHECK(inputs[1].inputs().empty());
  CHECK_FALSE(inputs[1].has_grad());
  tg::sum(model.head(Array(tg::Shape{1, 8}, 1.0))).backward();
  const Recorded weight = tape.find<double>("head.weight");
  CHECK(weight.operation() == "constant");
  CHECK_FALSE(weight.is_parameter());
  CHECK_CLOSE(weight.value(), model.head.weight, 0);
}

// page_test.cpp compares their gradient with that of the composed form, transformer_decoder_test.cpp their values.
TEST_CASE("Attention weights are computed for an operation or for the only attention of a layer") {
  const Recordable model;
  const tg::Tape tape(kKeeping);
  tg::cross_entropy(model(ids), labels).backward();
  const auto weights = tape.find<double>("blocks.1").attention_weights();
  CHECK(weights.value().shape() == tg::Shape{2, 2, 4, 4});
  CHECK(weights.value()(0, 1, 1, 2) == 0);
  CHECK_CLOSE(xt::sum(weights.value(), {3}), Array(tg::Shape{2, 2, 4}, 1.0));
  const Recorded heads = tape.find<double>("blocks.1.attention.heads");
  CHECK_CLOSE(heads.attention_weights().value(), weights.value(), 0);
  CHECK_CLOSE(heads.attention_weights().grad(), weights.grad(), 0);
  CHECK_THROWS_WITH_AS(tape.find<double>("head").attention_weights(),
                       "[attention_weights] expected an attention, or a layer with one, got the layer head with 0",
                       std::logic_error);
  const Recordable dropping(0.5);
  const tg::Tape other(kKeeping);
  tg::cross_entropy(dropping(ids), labels).backward();
  CHECK_FALSE(other.find<double>("blocks.1").attention_weights().has_grad());
  CHECK_THROWS_AS(other.find<double>("blocks.1").attention_weights().grad(), std::logic_error);
}

TEST_CASE("find_all matches patterns in the order of recording, and finds a layer once per call") {
  const Recordable model;
  const tg::Tape tape(kKeeping);
  (void)model.head(Tensor(Array(tg::Shape{1, 8}, 1.0)));
  (void)model(ids);
  const auto attentions = tape.find_all<double>("*.attention");
  REQUIRE(attentions.size() == 2);
  CHECK(attentions[0].layer() == "blocks.0.attention");
  CHECK(attentions[1].layer() == "blocks.1.attention");
  CHECK(tape.find_all<double>("blocks.0.norm1*").size() == 3);  // with weight and bias
  CHECK(tape.find_all<double>("nothing*").empty());
  const auto heads = tape.find_all<double>("head");
  REQUIRE(heads.size() == 2);
  CHECK(heads[0].shape() == tg::Shape{1, 3});
  CHECK(heads[1].shape() == tg::Shape{2, 3});
  CHECK_THROWS_WITH_AS(tape.find<double>("head"),
                       Contains("[find] expected one node named \"head\", got 2: linear #2 (1, 3), linear #"),
                       std::invalid_argument);
}

TEST_CASE("Operations after a backward pass appear with the next one") {
  const Recordable model;
  const tg::Tape tape(kKeeping);
  const Tensor loss = tg::cross_entropy(model(ids), labels);
  CHECK(tape.nodes<double>().size() == tape.size());
  loss.backward();
  const std::size_t size = tape.size();
  const Tensor again = tg::sum(model.head(Array(tg::Shape{1, 8}, 1.0)));
  CHECK(tape.nodes<double>().size() == size);
  CHECK(tape.find<double>("head").shape() == tg::Shape{2, 3});
  again.backward();
  CHECK(tape.nodes<double>().size() == tape.size());
  CHECK(tape.find_all<double>("head").size() == 2);
}

TEST_CASE("Unknown names are refused with the nearest ones, and tapes without values with the option") {
  const Recordable model;
  const tg::Tape tape(kKeeping);
  CHECK_THROWS_WITH_AS(tape.find<double>("head"),
                       "[find] expected the path of a layer or parameter, or the name of a tensor of double, got "
                       "\"head\"; nothing on the tape has a name: call tapegrad::parameters(model) before",
                       std::out_of_range);
  (void)model(ids);
  CHECK_THROWS_WITH_AS(tape.find<double>("poled"),
                       "[find] expected the path of a layer or parameter, or the name of a tensor of double, got "
                       "\"poled\"; the nearest are pooled, head and blocks.0",
                       std::out_of_range);
  CHECK_THROWS_WITH_AS(tape.find<float>("head"), Contains("of float, got \"head\""), std::out_of_range);
  const tg::Tape plain;
  const char* const message =
      "[find] expected a tape that keeps its values, got one that does not; create it with tapegrad::Tape "
      "tape({.keep_values = true})";
  CHECK_THROWS_WITH_AS(plain.find<double>("head"), message, std::logic_error);
  CHECK_THROWS_WITH_AS(plain.find_all<double>("*"), message, std::logic_error);
  CHECK_THROWS_WITH_AS(plain.nodes<double>(), message, std::logic_error);
}
