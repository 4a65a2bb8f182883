// Every operation's formula names its value and the contribution of its rule to the gradient of each input.
#include <tapegrad/inspect/internal/formula.hpp>
#include <tapegrad/inspect/internal/node_view.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../../operations/table.hpp"
#include "paths.hpp"

namespace tg = tapegrad;
using namespace operations;
using tg::detail::Formula;
using tg::detail::formula_of;

namespace {

using TapeNode = tg::detail::NodeView<double>;

// Calls visit for each operation recorded by a sample.
template <class Visit> void for_each_operation(const Sample& sample, Visit visit) {
  std::vector<tg::Parameter<double>> x;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) x.emplace_back(numbers<double>(sample.inputs[i], i));
  const tg::Tape tape({.keep_values = true});
  tg::manual_seed(0);
  (void)sample.in_double(Inputs<double>(x.begin(), x.end()));
  tg::detail::for_each_node(*tape.recording(), [&](const auto& node) {
    if constexpr (std::same_as<decltype(node), const TapeNode&>)
      if (!node.is_parameter) visit(node);
  });
}

// Number of inputs without undefined ones, such as an absent bias.
std::size_t defined_inputs(const TapeNode& node) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < node.inputs.size(); ++n)
    count += node.inputs[n] >= 0 || node.kept->constants[n].value != nullptr;
  return count;
}

// The part before the first " = ".
std::string left_of(const std::string& equation) { return equation.substr(0, equation.find(" = ")); }

}  // namespace

TEST_CASE("Every operation has a formula with a rule for each input") {
  std::set<std::string> seen;
  for (const Sample& sample : table().samples)
    for_each_operation(sample, [&](const TapeNode& node) {
      CAPTURE(sample.title());
      const std::string name = node.operation.name;
      CAPTURE(name);
      seen.insert(name);
      const Formula formula = formula_of(node.operation);
      CHECK(left_of(formula.value) == "y");
      std::set<std::string> symbols;
      for (const std::string& rule : formula.rules) {
        CAPTURE(rule);
        CHECK(rule.starts_with("d"));
        CHECK(symbols.insert(left_of(rule)).second);
        CHECK(formula.value.find(rule[1]) != std::string::npos);  // the input's symbol
      }
      CHECK(formula.rules.size() == (name == "cat" ? 1 : defined_inputs(node)));
    });
  CHECK(seen.size() > 40);
}

TEST_CASE("Every operation describes its arguments besides tensors, in order") {
  const std::set<std::string> masks{"allowed", "valid_lens", "bias", "causal"};
  std::istringstream signatures(R"(
    add(other) amax(axes keepdims) binary_cross_entropy_with_logits(weight pos_weight reduction) cat(axis)
    clamp(min max) cross_entropy(labels ignore_index label_smoothing weight reduction) div(other) dropout(p)
    embedding(ids padding_idx) expand(shape) gather(axis index) gelu(approximate) layer_norm(normalized_shape eps)
    log_softmax(axis) masked_fill(mask value) masked_softmax(allowed valid_lens bias) matmul(equation)
    max(axis keepdims) mean(axes keepdims) mse_loss(reduction) mul(other)
    multi_head_attention(heads scale allowed valid_lens bias causal dropout) narrow(axis start length) permute(axes)
    pow(exponent) repeat(repeats) repeat_interleave(repeats axis) reshape(shape) rms_norm(normalized_shape eps)
    roll(shift axis) rotary_embedding(num_heads base first)
    scaled_dot_product_attention(heads scale allowed valid_lens bias causal dropout) select(axis index)
    softmax(axis) softplus(beta threshold) split(split_size axis start) squeeze(axis) sub(other) sum(axes keepdims)
    topk(k axis largest) transpose(axis0 axis1) tril(diagonal) triu(diagonal) unsqueeze(axis)
    var(axes keepdims correction) where(condition))");
  std::map<std::string, std::vector<std::string>> expected;
  for (std::string name, arguments; std::getline(signatures >> std::ws, name, '(');) {
    std::getline(signatures, arguments, ')');
    std::istringstream words(arguments);
    expected[name] = {std::istream_iterator<std::string>(words), {}};
  }
  std::map<std::string, std::set<std::string>> described;
  for (const Sample& sample : table().samples)
    for_each_operation(sample, [&](const TapeNode& node) {
      CAPTURE(sample.title());
      const std::string name = node.operation.name;
      CAPTURE(name);
      REQUIRE((expected.contains(name) || node.kept->arguments.arguments().empty()));
      if (!expected.contains(name)) return;
      std::ptrdiff_t last = -1;
      for (const auto& argument : node.kept->arguments.arguments()) {
        CAPTURE(argument.name);
        described[name].insert(argument.name);
        const std::vector<std::string>& all = expected.at(name);
        const std::ptrdiff_t place = std::ranges::find(all, argument.name) - all.begin();
        REQUIRE(place < std::ssize(all));
        if (masks.contains(argument.name)) continue;  // in the order of their combination
        CHECK(std::exchange(last, place) < place);
      }
    });
  for (const auto& row : expected) {
    CAPTURE(row.first);
    CHECK(described[row.first].size() == row.second.size());
  }
}

TEST_CASE("Operations that pages know by name exist in the library") {
  std::set<std::string> recorded;
  for (const Sample& sample : table().samples)
    for_each_operation(sample, [&](const TapeNode& node) { recorded.insert(node.operation.name); });
  std::ifstream file(TAPEGRAD_SOURCES "/inspect/page/browser/operations.js");
  const std::string script(std::istreambuf_iterator<char>(file), {});
  const std::regex quoted("\"(.*?)\"");
  std::size_t names = 0;
  for (std::sregex_iterator name(script.begin(), script.end(), quoted), end; name != end; ++name, ++names) {
    CAPTURE((*name)[1].str());
    CHECK(recorded.contains((*name)[1].str()));
  }
  CHECK(names > 20);
}

TEST_CASE("A formula is divided into the value and the rules, with its number in place of the letter c") {
  const Formula linear = formula_of({"linear", "y = x Wᵀ + b; dx = dy W; dW = dyᵀ x; db = Σ dy"});
  CHECK(linear.value == "y = x Wᵀ + b");
  CHECK(linear.rules == std::vector<std::string>{"dx = dy W", "dW = dyᵀ x", "db = Σ dy"});
  const Formula scaled = formula_of({"mul", "y = c x; dx = c cos(dy) c²", 0.5});
  CHECK(scaled.value == "y = 0.5 x");
  CHECK(scaled.rules == std::vector<std::string>{"dx = 0.5 cos(dy) 0.5²"});
  CHECK(formula_of({"add", "y = x + c", -2}).value == "y = x + (−2)");
  CHECK(formula_of({"add", "y = x + c", 0.0}).value == "y = x + 0");
  CHECK(formula_of({"own", "y = a + c; da = dy; dc = dy"}).value == "y = a + c");  // c is an input
  CHECK(formula_of("cube").value.empty());
  CHECK(formula_of("cube").rules.empty());
}
