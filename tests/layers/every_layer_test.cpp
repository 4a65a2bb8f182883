// What every layer must do as a model: switch its mode, save and load, copy, move, freeze, name its parameters, print.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "in_double.hpp"
#include "text.hpp"

using Names = std::vector<std::string>;

namespace {

template <class Make, class Call> struct Row {
  Make make;      // constructs the layer
  Call call;      // calls it with the same input each time
  bool drops;     // its output is random in training
  Names names;    // of its parameters, in order
  Names printed;  // rows of its listing: class names with options, its own first

  // A layer in evaluation mode whose parameters have random values.
  auto drawn() const {
    auto layer = make();
    for (const auto& parameter : tg::parameters(layer)) parameter->set_value(tg::normal<double>(parameter->shape()));
    tg::eval(layer);
    return layer;
  }
  Array result(const auto& layer) const { return call(layer).value(); }
};

Names prefixed(const std::string& prefix, const Names& names) {
  Names result;
  for (const std::string& name : names) result.push_back(prefix + name);
  return result;
}

Names joined(const std::vector<Names>& parts) {
  Names result;
  for (const Names& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

// A Dropout alone has no parameters and no type of numbers.
struct Dropped {
  tg::RMSNorm<double> norm{4};
  tg::Dropout dropout{0.25};
  TAPEGRAD_FIELDS(norm, dropout)
};

// Calls check(row) for every layer.
template <class Check> void for_each_layer(Check check) {
  tg::manual_seed(1);
  const auto row = [&](const std::string& name, bool drops, auto make, auto call, Names names, Names printed) {
    CAPTURE(name);
    check(Row<decltype(make), decltype(call)>{make, call, drops, std::move(names), std::move(printed)});
  };
  const Tensor x(tg::normal<double>({2, 3, 4})), wide(tg::normal<double>({2, 3, 8}));
  const auto of_x = [&](const auto& layer) { return layer(x); };
  const auto of_wide = [&](const auto& layer) { return layer(wide); };
  const auto of_ids = [](const auto& layer) { return layer(tg::IntArray{{4, 0}, {2, 4}}); };
  const Names weights{"q_proj.weight", "k_proj.weight", "v_proj.weight", "out_proj.weight"};
  const Names projections{"q_proj.weight", "q_proj.bias", "k_proj.weight",   "k_proj.bias",
                          "v_proj.weight", "v_proj.bias", "out_proj.weight", "out_proj.bias"};
  const Names two_layers{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};

  row("Linear", false, [] { return tg::Linear<double>(4, 3); }, of_x, {"weight", "bias"}, {"Linear  "});
  row("Linear without bias", false, [] { return tg::Linear<double>(4, 3, {.bias = false}); }, of_x, {"weight"},
      {"Linear  "});
  row("Linear with a low-rank update", false,
      [] {
        tg::Linear<double> layer(4, 3);
        tg::add_low_rank(layer, 2, 8);
        return layer;
      },
      of_x, {"weight", "bias", "lora_A.weight", "lora_B.weight"}, {"Linear(lora_alpha=8)  "});
  row("Embedding", false, [] { return tg::Embedding<double>(5, 4); }, of_ids, {"weight"}, {"Embedding  "});
  row("Embedding with padding", false, [] { return tg::Embedding<double>(5, 4, {.padding_idx = 2}); }, of_ids,
      {"weight"}, {"Embedding(padding_idx=2)  "});
  row(
      "Dropout", true, [] { return Dropped(); }, [&](const Dropped& layers) { return layers.dropout(layers.norm(x)); },
      {"norm.weight"}, {"Dropped", "Dropout(p=0.25)"});
  row("LayerNorm", false, [] { return tg::LayerNorm<double>(4); }, of_x, {"weight", "bias"},
      {"LayerNorm(eps=1e-05, center=true)  "});
  row("LayerNorm without bias", false,
      [] {
        return tg::LayerNorm<double>({3, 4}, {.eps = 0.5, .bias = false});
      },
      of_x, {"weight"}, {"LayerNorm(eps=0.5, center=true)  "});
  row("RMSNorm", false, [] { return tg::RMSNorm<double>(4); }, of_x, {"weight"},
      {"RMSNorm(eps=1e-06, center=false)  "});
  row("MultiHeadAttention", false, [] { return tg::MultiHeadAttention<double>(4, 2); }, of_x, projections,
      {"MultiHeadAttention(num_heads=2, num_kv_heads=2)", "q_proj    Linear  ", "Dropout(p=0)"});
  row("MultiHeadAttention with dropout", true,
      [] { return tg::MultiHeadAttention<double>(4, 2, {.bias = false, .dropout = 0.5}); }, of_x, weights,
      {"MultiHeadAttention(num_heads=2, num_kv_heads=2)", "Dropout(p=0.5)"});
  row(
      "MultiHeadAttention of three inputs", false,
      [] {
        return tg::MultiHeadAttention<double>(6, 2, {.query_dim = 4, .key_dim = 8, .value_dim = 8, .bias = false});
      },
      [&](const auto& layer) { return layer(x, wide, wide); }, weights,
      {"MultiHeadAttention(num_heads=2, num_kv_heads=2)"});
  row("FeedForward", false, [] { return tg::FeedForward<double>(4, 6); }, of_x, two_layers, {"FeedForward"});
  row("FeedForward with a gate", false,
      [] { return tg::FeedForward<double>(4, 6, {.activation = tg::Activation::swiglu}); }, of_x,
      joined({{"gate.weight", "gate.bias"}, two_layers}), {"FeedForward", "gate  Linear  "});

  const Names block = joined({{"norm1.weight", "norm1.bias"},
                              prefixed("attention.", projections),
                              {"norm2.weight", "norm2.bias"},
                              prefixed("feed_forward.", two_layers)});
  row("TransformerBlock", false, [] { return tg::TransformerBlock<double>(4, 2); }, of_x, block,
      {"TransformerBlock", "norm1 ", "LayerNorm(eps=1e-05, center=true)  "});
  row("TransformerBlock with dropout", true, [] { return tg::TransformerBlock<double>(4, 2, {.dropout = 0.25}); }, of_x,
      block, {"TransformerBlock", "Dropout(p=0)", "Dropout(p=0.25)"});
  row("TransformerBlock with dropout of attention weights", true,
      [] { return tg::TransformerBlock<double>(4, 2, {.attention_dropout = 0.5}); }, of_x, block,
      {"TransformerBlock", "Dropout(p=0.5)", "Dropout(p=0)"});
  row("TransformerBlock without biases and norms", false,
      [] { return tg::TransformerBlock<double>(4, 2, {.bias = false, .norm = tg::NormPlacement::none}); }, of_x,
      joined({prefixed("attention.", weights), {"feed_forward.fc1.weight", "feed_forward.fc2.weight"}}),
      {"TransformerBlock"});
  row(
      "TransformerDecoderBlock", false, [] { return tg::TransformerDecoderBlock<double>(4, 2, {}, 8); },
      [&](const auto& layer) { return layer(x, wide); },
      joined({{"norm1.weight", "norm1.bias"},
              prefixed("attention.", projections),
              {"norm2.weight", "norm2.bias"},
              prefixed("cross_attention.", projections),
              {"norm3.weight", "norm3.bias"},
              prefixed("feed_forward.", two_layers)}),
      {"TransformerDecoderBlock", "norm1 ", "norm3 ", "Dropout(p=0)"});
  row("TransformerBlock of Llama", false,
      [] {
        return tg::TransformerBlock<double>(8, 4,
                                            {.feed_forward_width = 6,
                                             .activation = tg::Activation::swiglu,
                                             .bias = false,
                                             .normalization = tg::Normalization::rms,
                                             .num_kv_heads = 2,
                                             .rotary_base = 100});
      },
      of_wide,
      joined({{"norm1.weight"},
              prefixed("attention.", weights),
              {"norm2.weight", "feed_forward.gate.weight", "feed_forward.fc1.weight", "feed_forward.fc2.weight"}}),
      {"TransformerBlock", "LayerNorm(eps=1e-06, center=false)  ",
       "MultiHeadAttention(num_heads=4, num_kv_heads=2, rotary_base=100)", "gate "});
}

}  // namespace

TEST_CASE("A layer with dropout is random in training, and no layer is in evaluation mode") {
  for_each_layer([](const auto& row) {
    auto layer = row.drawn();
    const Array evaluated = row.result(layer);
    CHECK(row.result(layer) == evaluated);
    tg::train(layer);
    CHECK((row.result(layer) != evaluated) == row.drops);
    CHECK((row.result(layer) != row.result(layer)) == row.drops);
    tg::eval(layer);
    CHECK(row.result(layer) == evaluated);
  });
}

TEST_CASE("A loaded layer computes what the saved one does") {
  for_each_layer([](const auto& row) {
    const auto saved = row.drawn();
    auto loaded = row.drawn();
    CHECK(row.result(loaded) != row.result(saved));
    tg::load(loaded, tg::save_bytes(saved));
    CHECK(row.result(loaded) == row.result(saved));
  });
}

TEST_CASE("A copied layer computes the same and trains independently") {
  for_each_layer([](const auto& row) {
    auto original = row.drawn(), assigned = row.drawn();
    const auto copy = original;
    assigned = original;
    const Array expected = row.result(original);
    CHECK(row.result(copy) == expected);
    CHECK(row.result(assigned) == expected);
    {
      const tg::Tape tape;
      tg::sum(row.call(original)).backward();
    }
    for (const auto* layer : {&copy, &std::as_const(assigned)})
      for (const auto& named : tg::named_parameters(*layer)) CHECK_FALSE(named.second->has_grad());
    for (const auto& parameter : tg::parameters(original)) {
      CHECK(parameter->has_grad());
      parameter->mutable_value() *= 2.0;
    }
    CHECK(row.result(original) != expected);
    CHECK(row.result(copy) == expected);
    CHECK(row.result(assigned) == expected);
  });
}

TEST_CASE("A moved-from layer has no parameters and can be assigned to") {
  for_each_layer([](const auto& row) {
    auto layer = row.drawn();
    const Array expected = row.result(layer);
    auto constructed = std::move(layer);
    CHECK(tg::count_parameters(layer) == 0);  // NOLINT(bugprone-use-after-move)
    CHECK(row.result(constructed) == expected);
    layer = std::move(constructed);
    CHECK(tg::count_parameters(constructed) == 0);  // NOLINT(bugprone-use-after-move)
    CHECK(row.result(layer) == expected);
  });
}

TEST_CASE("A layer with frozen parameters computes the same without a gradient") {
  for_each_layer([](const auto& row) {
    const auto layer = row.drawn();
    auto frozen = layer;
    for (const auto& parameter : tg::parameters(frozen)) parameter->set_requires_grad(false);
    const tg::Tape tape;
    CHECK(row.call(layer).requires_grad());
    const std::size_t recorded = tape.size();
    const Tensor y = row.call(frozen);
    CHECK_FALSE(y.requires_grad());
    CHECK(tape.size() == recorded);
    CHECK(y.value() == row.result(layer));
  });
}

TEST_CASE("A layer's parameters are named like its fields, without those it lacks") {
  for_each_layer([](const auto& row) {
    const auto layer = row.make();
    Names names;
    std::size_t size = 0;
    for (const auto& [name, parameter] : tg::named_parameters(layer)) {
      names.push_back(name);
      size += parameter->size();
    }
    CHECK(names == row.names);
    CHECK(std::set(names.begin(), names.end()).size() == names.size());
    CHECK(tg::count_parameters(layer) == size);
  });
}

TEST_CASE("A layer prints its class, its options and those of its parts") {
  for_each_layer([](const auto& row) {
    const std::string text = listing(row.make());
    CAPTURE(text);
    CHECK(text.starts_with(row.printed.front()));
    for (std::size_t i = 0, at = 0; i < row.printed.size(); ++i) {
      CAPTURE(row.printed[i]);
      at = text.find(row.printed[i], at);
      CHECK(at != text.npos);
    }
  });
}
