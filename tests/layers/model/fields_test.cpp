#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "text.hpp"

namespace tg = tapegrad;

namespace {

template <class T> struct Block {
  tg::LayerNorm<T> norm;
  std::vector<tg::Linear<T>> mlp;
  tg::Dropout dropout;
  TAPEGRAD_FIELDS(norm, mlp, dropout)
};

struct Options {
  int depth = 2;
  double temperature = 1;
};

template <class T> struct Model {
  tg::Embedding<T> embedding;
  tg::Parameter<T> positions;
  std::vector<Block<T>> blocks;
  std::array<tg::Linear<T>, 2> pair;
  std::optional<tg::Linear<T>> extra;
  int steps = 3;
  Options options;
  std::string name = "small";
  std::vector<int> history;
  bool training = true;
  TAPEGRAD_FIELDS(embedding, positions, blocks, pair, extra, steps, name, history)
  TAPEGRAD_SETTINGS(options)
};

template <class T> Model<T> make_model() {
  const Block<T> block{tg::LayerNorm<T>(4), {tg::Linear<T>(4, 8), tg::Linear<T>(8, 4)}, tg::Dropout(0.1)};
  return {.embedding = tg::Embedding<T>(10, 4),
          .positions = tg::Parameter<T>(tg::Array<T>(tg::Shape{6, 4}, T(0))),
          .blocks = {block, block},
          .pair = {tg::Linear<T>(4, 3), tg::Linear<T>(4, 3, {.bias = false})},
          .extra = {},
          .options = {},
          .history = {}};
}

struct Nothing {
  TAPEGRAD_FIELDS()
};

struct WithoutList {
  tg::Linear<float> layer;
};

template <class T> struct Derived : tg::Linear<T> {
  tg::Linear<T> more{1, 1};
  Derived() : tg::Linear<T>(1, 1) {}
  TAPEGRAD_FIELDS(this->weight, this->bias, more)
};

struct Two {
  tg::Linear<float> first, second;
  TAPEGRAD_FIELDS(first, second)
};

struct Mixed {
  tg::Linear<float> one;
  tg::Linear<double> two;
  TAPEGRAD_FIELDS(one, two)
};

template <class Named> std::vector<std::string> names(const Named& named) {
  std::vector<std::string> result;
  for (const auto& [name, parameter] : named) result.push_back(name);
  return result;
}

}  // namespace

TEST_CASE_TEMPLATE("A model's parameters are named by the path of fields and indices", T, float, double) {
  Model<T> model = make_model<T>();
  const std::vector<std::string> expected{
      "embedding.weight",      "positions",           "blocks.0.norm.weight",  "blocks.0.norm.bias",
      "blocks.0.mlp.0.weight", "blocks.0.mlp.0.bias", "blocks.0.mlp.1.weight", "blocks.0.mlp.1.bias",
      "blocks.1.norm.weight",  "blocks.1.norm.bias",  "blocks.1.mlp.0.weight", "blocks.1.mlp.0.bias",
      "blocks.1.mlp.1.weight", "blocks.1.mlp.1.bias", "pair.0.weight",         "pair.0.bias",
      "pair.1.weight"};
  CHECK(names(tg::named_parameters(model)) == expected);
  CHECK(names(tg::named_parameters(std::as_const(model))) == expected);
  static_assert(std::is_same_v<decltype(tg::named_parameters(model)), tg::NamedParameters<T>>);

  const auto named = tg::named_parameters(model);
  const auto all = tg::parameters(model);
  REQUIRE(all.size() == named.size());
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == named[i].second);
  CHECK(all[0] == tg::ParameterHandle(model.embedding.weight));
  CHECK(all[16] == tg::ParameterHandle(model.pair[1].weight));
}

TEST_CASE("train and eval switch all nested layers, and a model's own training flag") {
  Model<float> model = make_model<float>();
  tg::eval(model);
  CHECK(!model.training);
  for (const auto& block : model.blocks) CHECK(!block.dropout.training);
  tg::train(model);
  CHECK(model.training);
  for (const auto& block : model.blocks) CHECK(block.dropout.training);
}

TEST_CASE("Members named training of another type than bool stay unchanged") {
  struct Counted {
    tg::Linear<float> layer{1, 1};
    std::size_t training = 7;
    TAPEGRAD_FIELDS(layer, training)
  } counted;
  struct TrainsByText {
    tg::Linear<float> layer{1, 1};
    std::string training = "by night";
    double rate = 0.5;
    TAPEGRAD_FIELDS(layer)
    TAPEGRAD_SETTINGS(rate)
  } by_text;
  tg::eval(counted);
  tg::eval(by_text);
  tg::train(counted);
  tg::train(by_text);
  CHECK(counted.training == 7);
  CHECK(by_text.training == "by night");
}

TEST_CASE("A model is still an aggregate, its number type follows from its parameters, misuse does not compile") {
  static_assert(std::is_aggregate_v<Model<float>> && std::is_aggregate_v<Block<double>>);
  static_assert(std::is_aggregate_v<Nothing> && std::is_empty_v<Nothing>);
  using namespace tg::detail;
  static_assert(std::is_same_v<ScalarOf<Model<float>>, float> && std::is_same_v<ScalarOf<const Model<double>>, double>);
  static_assert(scalars_of<Mixed>().of_float && scalars_of<Mixed>().of_double);
  static_assert(!scalars_of<Nothing>().of_float && !scalars_of<Nothing>().of_double);
  static_assert(!is_model<WithoutList> && is_model<const std::vector<std::optional<tg::Linear<>>>>);
  static_assert(!is_model<std::vector<std::string>>);
}

TEST_CASE("Types that can be saved are distinguished from others at compile time") {
  using tg::detail::is_stored;
  static_assert(is_stored<bool> && !is_stored<char> && is_stored<std::int16_t> && is_stored<std::size_t> &&
                is_stored<long long>);
  static_assert(is_stored<float> && is_stored<double> && !is_stored<long double> && !is_stored<wchar_t> &&
                !is_stored<tg::Gelu>);
  static_assert(is_stored<std::string> && !is_stored<const char*> && !is_stored<std::string_view> && !is_stored<int*>);
  static_assert(is_stored<tg::Array<float>> && is_stored<tg::IntArray> && is_stored<tg::BoolArray>);
  static_assert(is_stored<tg::Tensor<float>> && is_stored<tg::Parameter<double>>);
  static_assert(is_stored<std::vector<double>> && is_stored<std::vector<bool>> && is_stored<std::array<int, 3>>);
  static_assert(is_stored<std::optional<double>> && is_stored<std::optional<tg::IntArray>>);
  static_assert(!is_stored<std::optional<tg::Parameter<float>>>);  // traversals enter it instead
  static_assert(!is_stored<WithoutList> && !is_stored<Options>);
  static_assert(!is_stored<std::unique_ptr<tg::Linear<>>> && !is_stored<std::function<void()>> &&
                !is_stored<std::set<int>>);
}

TEST_CASE("Lists with anything but unique member names do not compile") {
  using tg::detail::are_identifiers, tg::detail::has_duplicates;
  static_assert(!has_duplicates("") && !has_duplicates("a") && !has_duplicates("a, aa, a_b, A, b"));
  static_assert(has_duplicates("a, a") && has_duplicates("a, b, a") && has_duplicates("b,a , a") &&
                has_duplicates("a, this->a") && has_duplicates("a_, a"));
  static_assert(are_identifiers("") && are_identifiers("a") && are_identifiers("aAzZ_09, this->b , \u00e9, \u0100"));
  for (const char* list : {"a.b", "a, b[0]", "*a", "Base::a", "a b", "std::get<0>(a)", "a->b", "a/", "@", "a`", "a{"}) {
    CAPTURE(list);
    CHECK_FALSE(are_identifiers(list));
  }
}

TEST_CASE("Field names are the members' names, for any formatting of the list") {
  Derived<float> model;
  // clang-format off
  struct Spaced {
    tg::Linear<> first{1, 1}, second{1, 1};
    TAPEGRAD_FIELDS(first ,
                    second)
  } spaced;
  // clang-format on
  CHECK(names(tg::named_parameters(model)) == std::vector<std::string>{"weight", "bias", "more.weight", "more.bias"});
  CHECK(names(tg::named_parameters(spaced))[1] == "first.bias");
}

TEST_CASE("A model prints as a nested listing with settings, shapes, counts and their total") {
  const std::string expected =
      "Model(steps=3)                                     positions (6, 4)          24\n"
      "  embedding     Embedding                          weight (10, 4)            40\n"
      "  blocks.0      Block\n"
      "    norm        LayerNorm(eps=1e-05, center=true)  weight (4), bias (4)       8\n"
      "    mlp.0       Linear                             weight (8, 4), bias (8)   40\n"
      "    mlp.1       Linear                             weight (4, 8), bias (4)   36\n"
      "    dropout     Dropout(p=0.1)\n"
      "  blocks.1      Block\n"
      "    norm        LayerNorm(eps=1e-05, center=true)  weight (4), bias (4)       8\n"
      "    mlp.0       Linear                             weight (8, 4), bias (8)   40\n"
      "    mlp.1       Linear                             weight (4, 8), bias (4)   36\n"
      "    dropout     Dropout(p=0.1)\n"
      "  pair.0        Linear                             weight (3, 4), bias (3)   15\n"
      "  pair.1        Linear                             weight (3, 4)             12\n"
      "total                                                                       259\n"
      "note: blocks.1 starts with the same numbers as blocks.0, as a copy does: std::vector<Block>(n, Block(d)) copies "
      "one, emplace_back(d) makes each anew\n";
  CHECK(listing(make_model<float>()) == expected);
}

TEST_CASE("All numbers in a listing have thousands separators") {
  struct Wide {
    tg::Embedding<> table;
    tg::Dropout dropout;
    bool tied = true;
    double scale = 0.5;
    TAPEGRAD_FIELDS(table, dropout)
    TAPEGRAD_SETTINGS(tied, scale)
  };
  const Wide model{tg::Embedding<>(1234, 1000, {.padding_idx = 7}), tg::Dropout(0.25)};
  CHECK(listing(model) ==
        "Wide(tied=true, scale=0.5)\n"
        "  table    Embedding(padding_idx=7)  weight (1234, 1000)  1,234,000\n"
        "  dropout  Dropout(p=0.25)\n"
        "total                                                     1,234,000\n");
}

TEST_CASE("Layers, vectors of layers and a single parameter are printed like models") {
  tg::Linear<> layer(2, 3, {.bias = false});
  CHECK(listing(layer) ==
        "Linear  weight (3, 2)  6\n"
        "total                  6\n");
  CHECK(listing(std::vector<tg::Linear<>>{layer, tg::Linear<>(2, 3, {.bias = false})}) ==
        "0      Linear  weight (3, 2)   6\n"
        "1      Linear  weight (3, 2)   6\n"
        "total                         12\n");
  CHECK(listing(layer.weight) ==
        "       (3, 2)  6\n"
        "total          6\n");
}

namespace {

// Names of which one begins with another: blocks.1 and blocks.10, head and head2.
template <class Layer> struct Prefixed {
  Layer head{make()}, head2{make()}, hea{make()};
  std::vector<Layer> blocks = std::vector<Layer>(12, make());
  std::map<std::string, Layer> named{{"a", make()}, {"a1", make()}, {"a10", make()}, {"b", make()}};
  TAPEGRAD_FIELDS(head, head2, hea, blocks, named)

  static Layer make() {
    if constexpr (requires { Layer(1, 1); })
      return Layer(1, 1);
    else
      return {};
  }
};

// The paths of a listing's rows with parameters, from their indentation.
std::vector<std::string> listed_paths(const std::string& text) {
  std::vector<std::string> paths, outer;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the model itself
  while (std::getline(lines, line) && line.starts_with("  ")) {
    const std::size_t indent = line.find_first_not_of(' ');
    outer.resize(indent / 2 - 1, "?");
    const std::string name = line.substr(indent, line.find(' ', indent) - indent);
    outer.push_back((outer.empty() ? "" : outer.back() + '.') + name);
    if (line.find("weight (") != line.npos) paths.push_back(outer.back());
  }
  return paths;
}

}  // namespace

TEST_CASE("A listing puts each layer below its own owner, also if another path begins with the owner's") {
  const auto check = [](const auto& model) {
    std::vector<std::string> expected;
    for (const std::string& name : names(tg::named_parameters(model)))
      if (name.ends_with(".weight")) expected.push_back(name.substr(0, name.rfind('.')));
    const std::string text = listing(model);
    CAPTURE(text);
    CHECK(listed_paths(text) == expected);
    return text;
  };
  CHECK(check(Prefixed<tg::Linear<float>>()).find("note: blocks.1 and 10 more start with the same") !=
        std::string::npos);
  check(Prefixed<Prefixed<tg::Linear<float>>>());
}

TEST_CASE("A listing marks parts that started as copies, until they are trained") {
  const auto notes = [](const auto& model) {
    const std::string text = listing(model);
    const std::size_t start = text.find("note: ");
    return start == text.npos ? "" : text.substr(start, text.find(", ", start) - start);
  };
  std::vector<Block<float>> blocks(4,
                                   Block<float>{tg::LayerNorm<float>(2), {tg::Linear<float>(2, 2)}, tg::Dropout(0.1)});
  CHECK(notes(blocks) == "note: 1 and 2 more start with the same numbers as 0");
  for (auto& block : blocks) block.norm.weight.mutable_value() *= 2.0f;  // still equal, but separate
  CHECK(notes(blocks) == "note: 1.mlp.0.bias and 2 more start with the same numbers as 0.mlp.0.bias");
  for (auto& block : blocks) {
    block.norm.bias.set_value(block.norm.bias.value());
    block.mlp[0].weight.mutable_value() += 1.0f;
    block.mlp[0].bias.mutable_value() += 1.0f;
  }
  CHECK(notes(blocks) == "");

  Two tied{tg::Linear<float>(2, 2), tg::Linear<float>(2, 2)};
  CHECK(notes(tied) == "");
  tied.second.weight = tied.first.weight;
  CHECK(notes(tied) == "note: second.weight starts with the same numbers as first.weight");
  CHECK(listing(tied).find("does not stay tied to it: an assignment copies; tg::linear(x, first.weight) uses one") !=
        std::string::npos);
  tied.second = tied.first;
  CHECK(notes(tied) == "note: second starts with the same numbers as first");
  CHECK(notes(std::vector<tg::Parameter<float>>(2, tg::Parameter<float>(tg::Array<float>(tg::Shape{0})))) == "");
}

TEST_CASE("The gradient report mentions parts that started as copies, and does not fail for them") {
  const tg::Linear<float> layer(2, 2);
  const std::vector<tg::Linear<float>> layers{layer, layer};
  std::ostringstream out;
  tg::Tape tape;
  const tg::Tensor<float> x(tg::Array<float>{{1.0f, 2.0f}});
  tg::sum(layers[1](layers[0](x))).backward();
  CHECK(tg::gradient_report(out, layers));
  CHECK(out.str().find("note: 1 starts with the same numbers as 0, ") != std::string::npos);
}
