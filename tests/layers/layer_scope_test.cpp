// Layers of operations, and patches of their outputs.
#include <tapegrad/layers/internal/layer_call.hpp>
#include <tapegrad/testing.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "in_double.hpp"

namespace {

struct Residual {
  tg::Linear<double> fc{2, 2};
  TAPEGRAD_FIELDS(fc)

  Tensor operator()(const Tensor& x) const {
    const tg::LayerScope scope(*this);
    return scope.output(x + tg::relu(fc(x)));
  }
};

struct Scoped {
  std::vector<Residual> layers;
  tg::Linear<double> head{2, 1};
  TAPEGRAD_FIELDS(layers, head)

  Scoped() : layers(2) { tg::parameters(*this); }

  Tensor operator()(const Tensor& x) const {
    const tg::LayerScope scope("encoder");
    const Tensor h = layers[1](layers[0](x));
    const tg::LayerScope pooling("pooling");
    return pooling.output(head(h * h));
  }
};

const Array input{{1.0, 2.0}, {-3.0, 0.5}};
constexpr tg::TapeOptions keeping{.keep_values = true};

// "operation layer" of each operation.
std::vector<std::string> places(const tg::Tape& tape) {
  std::vector<std::string> all;
  for (const auto& node : tape.nodes<double>())
    if (!node.is_parameter()) all.push_back(node.operation() + ' ' + node.layer());
  return all;
}

}  // namespace

TEST_CASE("Operations belong to the innermost scope: a path of parameters, or a name inside the present layer") {
  const Scoped model;
  const tg::Tape tape(keeping);
  tg::sum(model(input)).backward();
  CHECK(places(tape) == std::vector<std::string>{"linear layers.0.fc", "relu layers.0", "add layers.0",
                                                 "linear layers.1.fc", "relu layers.1", "add layers.1",
                                                 "mul encoder.pooling", "linear head", "sum "});
  CHECK(tape.find<double>("encoder").operation() == "linear");
}

TEST_CASE("The first parameter with a fitting name decides a layer's path") {
  const Scoped model;
  struct Mixed {
    tg::Weight<double> other, weight;
    tg::Parameter<double> bias;
    TAPEGRAD_FIELDS(other, weight, bias)
  };
  const Mixed mixed{model.head.weight, model.layers[0].fc.weight, model.layers[1].fc.bias};
  CHECK(tg::detail::layer_path(mixed) == "layers.0.fc");
}

TEST_CASE("A layer whose parameters have no names stays in the present layer, and so does one without parameters") {
  const Residual unnamed;
  const tg::Dropout dropout(0.5);
  const tg::Tape tape(keeping);
  const tg::LayerScope scope("outer");
  (void)dropout(unnamed(input));
  CHECK(places(tape) == std::vector<std::string>{"linear outer", "relu outer", "add outer", "dropout outer"});
}

TEST_CASE("A scope ends with an exception, and tapes without observers see none") {
  const Scoped model;
  {
    const tg::Tape tape(keeping);
    CHECK_THROWS_AS(model(Array{{1.0, 2.0, 3.0}}), std::invalid_argument);
    (void)(model.head.bias * 2.0);
    CHECK(places(tape) == std::vector<std::string>{"mul "});
  }
  const tg::LayerScope before("before the tape");
  const tg::Tape tape(keeping);
  (void)(model.head.bias * 2.0);
  CHECK(places(tape) == std::vector<std::string>{"mul "});
}

TEST_CASE("A patch replaces a layer's output by a function, with gradients through it, or by a constant") {
  Scoped model;
  const auto run = [&] {
    tg::zero_grad(model);
    const tg::Tape tape;
    const Tensor y = model(input);
    tg::sum(y).backward();
    return y.value();
  };
  const Array plain = run();
  const Array weight_grad = model.layers[0].fc.weight.grad();
  {
    const tg::Patch<double> doubled("layers.0.fc", [](const Tensor& y) { return 2.0 * y; });
    const Array changed = run();
    const Array grad = model.layers[0].fc.weight.grad();
    CHECK(doubled.calls() == 1);
    model.layers[0].fc.weight.set_value(model.layers[0].fc.weight.value() * 2.0);
    model.layers[0].fc.bias.set_value(model.layers[0].fc.bias.value() * 2.0);
    const tg::Patch<double> back("layers.0.fc", [](const Tensor& y) { return y * 0.5; });  // after the first
    CHECK_CLOSE(run(), changed);
    CHECK_CLOSE(model.layers[0].fc.weight.grad() * 2.0, grad);
    model.layers[0].fc.weight.set_value(model.layers[0].fc.weight.value() * 0.5);
    model.layers[0].fc.bias.set_value(model.layers[0].fc.bias.value() * 0.5);
  }
  {
    const tg::Patch<double> constant("layers.1", Array(tg::Shape{2, 2}, 3.0));
    CHECK_CLOSE(run(), model.head(Tensor(Array(tg::Shape{2, 2}, 9.0))));
    CHECK_FALSE(model.layers[0].fc.weight.has_grad());
    CHECK(model.head.weight.has_grad());
  }
  CHECK_CLOSE(run(), plain, 0);
  CHECK_CLOSE(model.layers[0].fc.weight.grad(), weight_grad, 0);
}

TEST_CASE("A recomputed function is in the same layers in both calls, and the layer open meanwhile stays open") {
  const tg::Patch<double> doubled("outer.inner", [](const Tensor& y) { return 2.0 * y; });
  const Parameter x(Array{1.0, 2.0});
  const tg::Tape tape;
  Tensor y;
  {
    const tg::LayerScope outer("outer");
    y = tg::recompute([](const Tensor& h) { return tg::LayerScope("inner").output(h * 3.0); }, x);
  }
  const tg::LayerScope later("later");
  tg::sum(y).backward();
  CHECK(doubled.calls() == 2);
  CHECK(x.grad() == Array{6.0, 6.0});
  CHECK(tg::detail::open_layer->path == "later");
}

TEST_CASE("Patches reach layers of every kind, without a tape") {
  struct All {
    tg::MultiHeadAttention<double> attention{4, 2};
    tg::Embedding<double> embedding{5, 4};
    tg::LayerNorm<double> norm{4};
    tg::RMSNorm<double> rms{4};
    tg::FeedForward<double> feed_forward{4, 8};
    tg::TransformerBlock<double> block{4, 2};
    TAPEGRAD_FIELDS(attention, embedding, norm, rms, feed_forward, block)
  } all;
  const auto& attention = all.attention;
  tg::parameters(all);
  const Array x(tg::Shape{1, 3, 4}, 1.0), patched(tg::Shape{1, 3, 4}, 7.0);
  const auto check_patched = [&](const std::string& path, auto call) {
    CAPTURE(path);
    const tg::Patch<double> patch(path, patched);
    CHECK_CLOSE(call(), patched, 0);
    CHECK(patch.calls() == 1);
  };
  check_patched("attention", [&] { return attention(x); });
  check_patched("attention", [&] { return attention.with_weights(x, x, x).first; });
  check_patched("embedding", [&] { return all.embedding(tg::IntArray{{1, 2, 3}}); });
  check_patched("norm", [&] { return all.norm(x); });
  check_patched("rms", [&] { return all.rms(x); });
  check_patched("feed_forward", [&] { return all.feed_forward(x); });
  check_patched("block", [&] { return all.block(x); });
  const Array expected = attention.out_proj(Tensor(patched)).value();
  const tg::Patch<double> heads("attention.heads", patched);
  CHECK_CLOSE(attention(x), expected, 0);
  CHECK_CLOSE(attention.with_weights(x, x, x).first, expected, 0);
  tg::KeyValueCache<double> cache;
  CHECK_CLOSE(attention(x, cache), expected, 0);
  CHECK(heads.calls() == 3);
}

TEST_CASE("A patch of another shape is refused, one of another type or path has no calls, and any order ends") {
  const Scoped model;
  const Array plain = model(input).value();
  {
    const tg::Patch<double> patch("head", Array(tg::Shape{2, 2}, 1.0));
    CHECK_THROWS_WITH_AS(model(input), "[Patch] expected an output of head of shape (2, 1), got (2, 2)",
                         std::invalid_argument);
    CHECK(patch.calls() == 0);
  }
  auto first = std::make_unique<tg::Patch<double>>("hed", Array(tg::Shape{2, 1}, 1.0));
  const auto second = std::make_unique<tg::Patch<float>>("head", tg::Array<float>(tg::Shape{2, 1}, 1.0F));
  const auto third = std::make_unique<tg::Patch<double>>("head", [](const Tensor& y) { return y; });
  CHECK_CLOSE(model(input), plain, 0);
  CHECK(first->calls() + second->calls() == 0);
  CHECK(third->calls() == 1);
  first.reset();
  CHECK_CLOSE(model(input), plain, 0);
  CHECK(third->calls() == 2);
  std::thread([&] { (void)model(input); }).join();
  CHECK(third->calls() == 2);  // of its own thread
}
