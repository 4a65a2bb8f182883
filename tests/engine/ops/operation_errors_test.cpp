/// Invalid inputs to every operation: the type of exception, its text, and no change of state.
#include <map>
#include <optional>
#include <set>

#include "../../operations/run.hpp"
#include "refused.hpp"
#include "special_values.hpp"

namespace tg = tapegrad;
using namespace operations;
using Mask = tg::AttentionMask;
using tg::Shape;

namespace {

using X = const Inputs<double>&;

// Runs a call with parameters under a tape, like a training step, and expects it to fail before anything changes.
// `told` are parts of the message, `shapes` the inputs' shapes.
template <class Exception>
void check_operation(const std::string& operation, const std::vector<std::string>& told,
                     const std::vector<Shape>& shapes, void (*call)(X)) {
  std::vector<tg::Parameter<double>> x;
  for (const Shape& shape : shapes) x.emplace_back(numbers<double>(draw(shape), x.size()));
  check_refused_unchanged<Exception>(operation, told, [&] { call(Inputs<double>(x.begin(), x.end())); });
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i].value() == numbers<double>(draw(shapes[i]), i));
}

constexpr auto check_invalid = check_operation<std::invalid_argument>;
constexpr auto check_range = check_operation<std::out_of_range>;

}  // namespace

TEST_CASE("Arithmetic, where and dropout refuse incompatible shapes and probabilities outside [0, 1)") {
  check_invalid("clamp", {"neither"}, {{2, 3}}, [](X x) { tg::clamp(x[0], {}, {}); });
  check_invalid("masked_fill", {"(2, 3)", "(3, 3)"}, {{2, 3}},
                [](X x) { tg::masked_fill(x[0], tg::causal_mask(3, 3), 0); });
  check_invalid("where", {"(2, 3)", "(3, 3)"}, {{2, 3}, {3}},
                [](X x) { tg::where(tg::causal_mask(3, 3), x[0], x[1]); });
  check_invalid("dropout", {"[0, 1)", "got 1"}, {{3}}, [](X x) { tg::dropout(x[0], 1); });
  check_invalid("dropout", {"got -0.5"}, {{3}}, [](X x) { tg::dropout(x[0], -0.5, false); });
  check_invalid("dropout", {"got nan"}, {{3}}, [](X x) { tg::dropout(x[0], kNaN); });
}

TEST_CASE("Views refuse invalid axes, extents and counts") {
  check_invalid("transpose", {"2 axes, from -2 to 1", "got 2"}, {{2, 3}}, [](X x) { tg::transpose(x[0], 2, 0); });
  check_invalid("permute", {"(2, 3)", "(1)"}, {{2, 3}}, [](X x) { tg::permute(x[0], 1); });
  check_invalid("permute", {"(2, 3)", "(1, -1)"}, {{2, 3}}, [](X x) { tg::permute(x[0], {1, -1}); });
  check_invalid("permute", {"2 axes", "got 5"}, {{2, 3}}, [](X x) { tg::permute(x[0], {0, 5}); });
  check_invalid("reshape", {"6 elements", "(2, 3)", "(4)"}, {{2, 3}}, [](X x) { tg::reshape(x[0], 4); });
  check_invalid("reshape", {"(2, 3)", "(4, -1)"}, {{2, 3}}, [](X x) { tg::reshape(x[0], {4, -1}); });
  check_invalid("reshape", {"(-1, -1)"}, {{2, 3}}, [](X x) { tg::reshape(x[0], {-1, -1}); });
  check_invalid("reshape", {"(-2, -3)"}, {{2, 3}}, [](X x) { tg::reshape(x[0], {-2, -3}); });
  check_invalid("reshape", {"(0, -1)"}, {{0, 3}}, [](X x) { tg::reshape(x[0], {0, -1}); });
  check_invalid("transpose", {"got 1"}, {{}}, [](X x) { tg::transpose(x[0], 0, 1); });
  check_invalid("expand", {"(2, 3)", "(2, 4)"}, {{2, 3}}, [](X x) { tg::expand(x[0], {2, 4}); });
  check_invalid("expand", {"(2, 3)", "(3)"}, {{2, 3}}, [](X x) { tg::expand(x[0], 3); });
  check_invalid("expand", {"(3)", "(-1, 3)"}, {{3}}, [](X x) { tg::expand(x[0], {-1, 3}); });
  check_invalid("expand", {"(1)", "(-2)"}, {{1}}, [](X x) { tg::expand(x[0], -2); });
  check_invalid("repeat", {"(2, 3)", "(2)"}, {{2, 3}}, [](X x) { tg::repeat(x[0], 2); });
  check_invalid("repeat", {"(2)", "(-1)"}, {{2}}, [](X x) { tg::repeat(x[0], -1); });
  check_invalid("split", {"got 0"}, {{2, 3}}, [](X x) { tg::split(x[0], 0); });
  check_invalid("triu", {"()"}, {{}}, [](X x) { tg::triu(x[0]); });
}

TEST_CASE("Joining refuses an empty list and different shapes") {
  check_invalid("cat", {"none"}, {}, [](X x) { tg::cat(x); });
  check_invalid("cat", {"0 axes", "got 0"}, {{}, {}}, [](X x) { tg::cat(x); });
  check_invalid("stack", {"none"}, {}, [](X x) { tg::stack(x); });
}

TEST_CASE("Products refuse incompatible shapes and equations") {
  check_invalid("einsum", {"\"ij->ji\""}, {{2, 3}, {3}}, [](X x) { tg::einsum("ij->ji", x[0], x[1]); });
  check_invalid("einsum", {"\"i,j,k->i\""}, {{2}, {3}}, [](X x) { tg::einsum("i,j,k->i", x[0], x[1]); });
  check_invalid("einsum", {"\"ij,jk\""}, {{2, 3}, {3, 2}}, [](X x) { tg::einsum("ij,jk", x[0], x[1]); });
  check_invalid("einsum", {"\",i\""}, {{}, {3}}, [](X x) { tg::einsum(",i", x[0], x[1]); });
  check_invalid("einsum", {"\"...i,i->...\""}, {{2, 3}, {3}}, [](X x) { tg::einsum("...i,i->...", x[0], x[1]); });
  check_invalid("einsum", {"\"ii,i->i\""}, {{3, 3}, {3}}, [](X x) { tg::einsum("ii,i->i", x[0], x[1]); });
  check_invalid("einsum", {"\"i,j->ii\""}, {{3}, {3}}, [](X x) { tg::einsum("i,j->ii", x[0], x[1]); });
  check_invalid("einsum", {"\"i,j->ik\""}, {{3}, {3}}, [](X x) { tg::einsum("i,j->ik", x[0], x[1]); });
  // Neighbors of the letters, whose first and last are valid.
  check_invalid("einsum", {"\"@,i->i\""}, {{3}, {3}}, [](X x) { tg::einsum("@,i->i", x[0], x[1]); });
  check_invalid("einsum", {"\"[,i->i\""}, {{3}, {3}}, [](X x) { tg::einsum("[,i->i", x[0], x[1]); });
  check_invalid("einsum", {"\"`,i->i\""}, {{3}, {3}}, [](X x) { tg::einsum("`,i->i", x[0], x[1]); });
  check_invalid("einsum", {"\"{,i->i\""}, {{3}, {3}}, [](X x) { tg::einsum("{,i->i", x[0], x[1]); });
  const tg::Parameter<double> x(numbers<double>(draw({3}), 0)), y(numbers<double>(draw({2}), 1));
  for (const char* outer : {"A,Z->AZ", "a,z->az"})
    CHECK(tg::einsum(outer, x, y).value() == tg::einsum("i,j->ij", x, y).value());
}

TEST_CASE("Reductions and row operations refuse invalid axes and empty rows") {
  check_invalid("sum", {"(1, -1)"}, {{2, 3}}, [](X x) { tg::sum(x[0], {1, -1}); });
  check_invalid("mean", {"(2, 0)"}, {{2, 0}}, [](X x) { tg::mean(x[0], 1); });
  check_invalid("amax", {"(0)"}, {{0}}, [](X x) { tg::amax(x[0]); });
  check_invalid("var", {"(1, -1)"}, {{2, 3}}, [](X x) { tg::var(x[0], {1, -1}); });
  check_invalid("var", {"(2, 0)"}, {{2, 0}}, [](X x) { tg::var(x[0], 1, 0); });
  check_invalid("layer_norm", {"got -1"}, {{3}}, [](X x) { tg::layer_norm(x[0], {}, {}, -1); });
  check_invalid("layer_norm", {"got nan"}, {{3}}, [](X x) { tg::layer_norm(x[0], {}, {}, kNaN); });
  check_invalid("rms_norm", {"got -1"}, {{3}}, [](X x) { tg::rms_norm(x[0], {}, -1); });
  check_invalid("max", {"(2, 0)"}, {{2, 0}}, [](X x) { tg::max(x[0], 1); });
  check_invalid("gather", {"(2, 3)", "axis 1", "(3, 1)"}, {{2, 3}}, [](X x) {
    tg::gather(x[0], 1, tg::IntArray(Shape{3, 1}, 0));
  });
  check_invalid("gather", {"()", "(1, 1)"}, {{}}, [](X x) { tg::gather(x[0], 0, tg::IntArray(Shape{1, 1}, 0)); });
  check_invalid("argmax", {"(2, 0)"}, {{2, 0}}, [](X x) { tg::argmax(x[0], 1); });
}

TEST_CASE("Losses refuse incompatible shapes and options, and a mean over nothing") {
  check_invalid("cross_entropy", {"(2)", "(2, 3)", "(3)"}, {{2, 3}}, [](X x) { tg::cross_entropy(x[0], {0, 1, 2}); });
  check_invalid("cross_entropy", {"(0, 3)"}, {{0, 3}}, [](X x) { tg::cross_entropy(x[0], tg::int_array({})); });
  check_invalid("accuracy", {"at least one label", "(0, 3)"}, {{0, 3}},
                [](X x) { tg::accuracy(x[0], tg::int_array({})); });
  check_invalid("accuracy", {"(2)", "(2, 3)", "(3)"}, {{2, 3}}, [](X x) { tg::accuracy(x[0], {0, 1, 2}); });
  check_invalid("cross_entropy", {"[0, 1]", "got 1.5"}, {{1, 3}},
                [](X x) { tg::cross_entropy(x[0], {0}, {.label_smoothing = 1.5}); });
  check_invalid("cross_entropy", {"got nan"}, {{1, 3}},
                [](X x) { tg::cross_entropy(x[0], {0}, {.label_smoothing = kNaN}); });
  check_invalid("cross_entropy", {"(3)", "(2)"}, {{1, 3}},
                [](X x) { tg::cross_entropy(x[0], {0}, {.weight = tg::Array<double>(Shape{2}, 1)}); });
  check_invalid("cross_entropy", {"(0, 3)"}, {{0, 3}, {0, 3}}, [](X x) { tg::cross_entropy(x[0], x[1]); });
  check_invalid("cross_entropy", {"ignore_index", "got 1"}, {{2, 3}, {2, 3}},
                [](X x) { tg::cross_entropy(x[0], x[1], {.ignore_index = 1}); });
  check_invalid("cross_entropy", {"(3)", "(2)"}, {{2, 3}, {2, 3}},
                [](X x) { tg::cross_entropy(x[0], x[1], {.weight = tg::Array<double>(Shape{2}, 1)}); });
  for (const tg::Shape& shape : {tg::Shape{}, tg::Shape{0}, tg::Shape{0, 0}, tg::Shape{2, 0}}) {
    const std::vector<std::string> parts{"(..., classes)", tg::to_string(shape)};
    check_invalid("accuracy", parts, {shape}, [](X x) { tg::accuracy(x[0], tg::int_array({})); });
    check_invalid("cross_entropy", parts, {shape},
                  [](X x) { tg::cross_entropy(x[0], tg::int_array({}), {.reduction = tg::Reduction::sum}); });
    check_invalid("cross_entropy", parts, {shape, shape},
                  [](X x) { tg::cross_entropy(x[0], x[1], {.reduction = tg::Reduction::sum}); });
  }
  const std::string binary = "binary_cross_entropy_with_logits";
  check_invalid(binary, {"(0, 3)"}, {{0, 3}, {0, 3}}, [](X x) { tg::binary_cross_entropy_with_logits(x[0], x[1]); });
  check_invalid(binary, {"a weight", "(3)", "(2, 3)"}, {{3}, {3}}, [](X x) {
    tg::binary_cross_entropy_with_logits(x[0], x[1], {.weight = numbers<double>(draw({2, 3}), 0)});
  });
  check_invalid(binary, {"a pos_weight", "(3)", "(2)"}, {{3}, {3}}, [](X x) {
    tg::binary_cross_entropy_with_logits(x[0], x[1], {.pos_weight = tg::Array<double>(Shape{2}, 1)});
  });
  check_invalid("mse_loss", {"(0, 3)"}, {{0, 3}, {0, 3}}, [](X x) { tg::mse_loss(x[0], x[1]); });
}

TEST_CASE("Attention refuses incompatible shapes, heads, probabilities and masks") {
  const auto two_heads = [](X x) { tg::multi_head_attention(x[0], x[1], x[2], 2); };
  const std::string one = "scaled_dot_product_attention", many = "multi_head_attention";
  check_invalid(one, {"[0, 1)", "got 1"}, {{3, 4}, {3, 4}, {3, 4}},
                [](X x) { tg::scaled_dot_product_attention(x[0], x[1], x[2], {}, {.dropout = 1}); });
  check_invalid(one, {"(1, 1, 3, 4)", "(5, 4)"}, {{3, 2}, {4, 2}, {4, 2}}, [](X x) {
    const Mask mask = Mask::boolean(tg::causal_mask(5, 4));
    tg::scaled_dot_product_attention(x[0], x[1], x[2], mask, {.dropout = 0.5});
  });
  check_invalid(many, {"0 heads"}, {{1, 3, 4}, {1, 3, 4}, {1, 3, 4}},
                [](X x) { tg::multi_head_attention(x[0], x[1], x[2], 0); });
  check_invalid(many, {"(1, 3, 4), (1, 3, 8) and (1, 3, 8)"}, {{1, 3, 4}, {1, 3, 8}, {1, 3, 8}}, two_heads);
  check_invalid(many, {"(1, 3, 4), (1, 3, 0) and (1, 3, 0)"}, {{1, 3, 4}, {1, 3, 0}, {1, 3, 0}}, two_heads);
  check_invalid(many, {"3 heads", "(1, 3, 6), (1, 3, 4) and (1, 3, 4)"}, {{1, 3, 6}, {1, 3, 4}, {1, 3, 4}},
                [](X x) { tg::multi_head_attention(x[0], x[1], x[2], 3); });
  check_invalid(many, {"2 heads", "(1, 3, 8), (1, 3, 4) and (1, 3, 3)"}, {{1, 3, 8}, {1, 3, 4}, {1, 3, 3}},
                [](X x) { tg::multi_head_attention(x[0], x[1], x[2], 4); });
  check_invalid(many, {"got -1"}, {{1, 3, 4}, {1, 3, 4}, {1, 3, 4}},
                [](X x) { tg::multi_head_attention(x[0], x[1], x[2], 2, {}, {.dropout = -1}); });
  const auto rotate = [](X x) { tg::rotary_embedding(x[0], 2); };
  check_invalid("rotary_embedding", {"even", "2 heads", "(1, 2, 6)"}, {{1, 2, 6}}, rotate);
  check_invalid("rotary_embedding", {"2 heads", "(1, 2, 5)"}, {{1, 2, 5}}, rotate);
  check_invalid("rotary_embedding", {"0 heads"}, {{1, 2, 4}}, [](X x) { tg::rotary_embedding(x[0], 0); });
  check_invalid("rotary_embedding", {"above 0", "got 0"}, {{1, 2, 4}},
                [](X x) { tg::rotary_embedding(x[0], 1, {.base = 0}); });
  check_invalid("rotary_embedding", {"got inf"}, {{1, 2, 4}},
                [](X x) { tg::rotary_embedding(x[0], 1, {.base = kInfinity}); });
  const auto refuses = [](const Shape& shape, const std::vector<std::string>& told, const Mask& mask) {
    const tg::Parameter<double> x(numbers<double>(draw(shape), 0));
    check_refused_unchanged("masked_softmax", told, [&] { tg::masked_softmax(x, mask); });
  };
  refuses({2, 3, 4}, {"(2, 1, 3, 4)", "(2, 1, 1, 5)"}, Mask::key_padding(tg::causal_mask(2, 5)));
  refuses({2, 3, 4}, {"(2, 1, 3, 4)", "(3, 1, 1, 4)"}, Mask::key_padding(tg::causal_mask(3, 4)));
  refuses({2, 3, 4}, {"(2, 1, 3, 4)", "got (3)"}, Mask::valid_lens({1, 2, 3}));
  refuses({2, 3, 4}, {"(2, 1, 3, 4)", "got (2, 2)"}, Mask::valid_lens({{1, 2}, {3, 4}}));
  refuses({2, 3, 4}, {"(2, 1, 3, 4)", "(4, 3)"}, Mask::boolean(tg::causal_mask(4, 3)));
  refuses({3, 4}, {"(1, 1, 3, 4)", "(3)"}, Mask::additive({0, 0, 0}));
}

TEST_CASE("Indices outside their range are refused") {
  const tg::Parameter<double> x(numbers<double>(draw({3, 3}), 0));
  const auto check = [&](const char* operation, std::int64_t lowest, const char* told, auto call) {
    for (const std::int64_t index : {lowest - 1, 3L, std::numeric_limits<std::int64_t>::min()})
      check_refused_unchanged<std::out_of_range>(operation, {told, "got " + std::to_string(index)},
                                                 [&] { call(x, index); });
  };
  check("select", -3, "axis 1", [](auto& x, auto i) { tg::select(x, 1, i); });
  check("gather", 0, "0 to 2", [](auto& x, auto i) { tg::gather(x, 1, {{0, 1}, {2, i}}); });
  check("embedding", 0, "0 to 2", [](auto& x, auto i) { tg::embedding(x, {0, i}); });
  check("embedding", 0, "padding_idx from 0 to 2", [](auto& x, auto i) { tg::embedding(x, {0}, i); });
  check("cross_entropy", 0, "0 to 2", [](auto& x, auto i) { tg::cross_entropy(x, {0, i, 1}); });
  check("accuracy", 0, "-100", [](auto& x, auto i) { tg::accuracy(x, {0, i, 1}); });
  check("one_hot", 0, "0 to 2", [](auto&, auto i) { tg::one_hot({0, i}, 3); });
  check_range("narrow", {"axis 1", "(2, 3)", "2 from 2"}, {{2, 3}}, [](X x) { tg::narrow(x[0], 1, 2, 2); });
  check_range("narrow", {"1 from -4"}, {{2, 3}}, [](X x) { tg::narrow(x[0], 1, -4, 1); });
  check_range("narrow", {"from 1"}, {{2, 3}}, [](X x) { tg::narrow(x[0], 1, 1, std::size_t(-1)); });
  check_range("topk", {"0 to 3", "axis -1", "(2, 3)", "got 4"}, {{2, 3}}, [](X x) { tg::topk(x[0], 4); });
  check_range("topk", {"1 to 1", "got 0"}, {{}}, [](X x) { tg::topk(x[0], 0); });
}

// The cases below add and remove axes of tensors; these are arrays, and operands with several forms.
TEST_CASE("Every other operand with a fixed number of axes is refused with any other, even for one element") {
  using Axes = std::set<std::size_t>;
  const auto ones = [](std::size_t axes) { return tg::Array<double>(Shape(axes, 1), 1.0); };
  // call(x of axes of extent 1, operand)
  const auto check = [&](const std::string& operation, const char* operand, std::size_t axes_of_x, const Axes& accepted,
                         auto call) {
    for (std::size_t axes = 0; axes <= 5; ++axes) {
      INFO(operation, ": ", operand, " of ", axes, " axes");
      const tg::Parameter<double> x(ones(axes_of_x)), given(ones(axes));
      tg::Tape tape;
      if (accepted.contains(axes)) {
        CHECK_NOTHROW(call(x, given));
        continue;
      }
      const std::string begin = '[' + operation + "] expected ", shape = tg::to_string(given.shape());
      CHECK_THROWS_WITH_AS(call(x, given), doctest::Contains(begin.c_str()), std::invalid_argument);
      CHECK_THROWS_WITH_AS(call(x, given), doctest::Contains(shape.c_str()), std::invalid_argument);
      CHECK(tape.size() == 0);
    }
  };
  const auto array = [](const auto& x) { return std::optional<tg::Array<double>>(x.value()); };
  const auto indices = [](const auto& x) { return tg::IntArray(x.shape(), 0); };
  const auto in_bfloat16 = [](const auto& x) {
    tg::Weight<double> weight(x);
    weight.hold_in_bfloat16();
    return weight;
  };
  check("linear", "weight", 1, {2}, [](auto& x, auto& w) { tg::linear(x, w); });
  check("linear", "weight in bfloat16", 1, {2},
        [&](auto& x, auto& w) { tg::linear(x, in_bfloat16(w), tg::Tensor<double>()); });
  check("linear", "bias beside bfloat16", 2, {1}, [&](auto& x, auto& b) { tg::linear(x, in_bfloat16(x), b); });
  check("embedding", "weight", 2, {2}, [](auto&, auto& w) { tg::embedding(w, {0}); });
  check("embedding", "weight in bfloat16", 2, {2}, [&](auto&, auto& w) { tg::embedding(in_bfloat16(w), {0}); });
  check("layer_norm", "bias", 3, {1, 2, 3}, [](auto& x, auto& b) { tg::layer_norm(x, {}, b); });
  check("rms_norm", "weight", 3, {1, 2, 3}, [](auto& x, auto& w) { tg::rms_norm(x, w); });
  check("cross_entropy", "labels", 2, {1}, [&](auto& x, auto& t) { tg::cross_entropy(x, indices(t)); });
  check("cross_entropy", "class weights", 2, {1},
        [&](auto& x, auto& w) { tg::cross_entropy(x, {0}, {.weight = array(w)}); });
  check("cross_entropy", "class weights beside probabilities", 2, {1},
        [&](auto& x, auto& w) { tg::cross_entropy(x, x, {.weight = array(w)}); });
  const char* binary = "binary_cross_entropy_with_logits";
  check(binary, "weight", 2, {0, 1, 2},
        [&](auto& x, auto& w) { tg::binary_cross_entropy_with_logits(x, x.value(), {.weight = array(w)}); });
  check(binary, "pos_weight", 2, {0, 1, 2},
        [&](auto& x, auto& w) { tg::binary_cross_entropy_with_logits(x, x.value(), {.pos_weight = array(w)}); });
  check("gather", "index", 2, {2}, [&](auto& x, auto& i) { tg::gather(x, 0, indices(i)); });
  check("rotary_embedding", "input", 0, {}, [](auto&, auto& x) { tg::rotary_embedding(x, 1); });
  check("masked_softmax", "scores", 0, {2, 3, 4}, [](auto&, auto& x) { tg::masked_softmax(x, {}); });
}

TEST_CASE("Every operation refuses an undefined tensor, unless it stands for an omitted input") {
  const std::set<std::string> with_optional_inputs{"linear", "layer_norm", "rms_norm"};
  for (const Sample& sample : table().samples) {
    const std::size_t needed = with_optional_inputs.contains(sample.operation) ? 1 : sample.inputs.size();
    for (std::size_t i = 0; i < needed; ++i) {
      INFO(sample.title(), ", input ", i);
      Inputs<double> inputs;
      for (const Draw& input : sample.inputs) inputs.emplace_back(numbers<double>(input, inputs.size()));
      inputs[i] = {};
      CHECK_THROWS_AS(sample.in_double(inputs), std::logic_error);
    }
  }
}

// ---- generated from the rows of the table of operations ------------------------------------------------------------

namespace {

// The name in errors.
std::string name_of(const std::string& operation) {
  const std::map<char, std::string> operators{{'+', "add"}, {'-', "sub"}, {'*', "mul"}, {'/', "div"}};
  return operation.starts_with("operator") ? operators.at(operation[8]) : operation;
}

// Calls with parameters of these shapes under a tape, like a training step, and expects an error before any change.
template <class Call>
void check_refused(const Sample& sample, const std::vector<Shape>& shapes, const std::string& told, Call call) {
  Parameters<double> x;
  for (const Shape& shape : shapes) x.emplace_back(numbers<double>(draw(shape), x.size()));
  std::string given;
  for (const Shape& shape : shapes) given += tg::to_string(shape);
  INFO(sample.title(), " of ", given, ", ", told);
  check_refused_unchanged(name_of(sample.operation), {told}, [&] { call(inputs_of(x)); });
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i].value() == numbers<double>(draw(shapes[i]), i));
}

std::vector<Shape> shapes_of(const Sample& sample) {
  std::vector<Shape> shapes;
  for (const Draw& input : sample.inputs) shapes.push_back(input.shape);
  return shapes;
}

// Errors about axes count these instead of naming the shape.
void check_shapes_refused(const Sample& sample, const std::vector<Shape>& shapes, const Shape& told) {
  const bool counts = sample.operation == "transpose" || (sample.operation == "cat" && shapes.back().empty());
  check_refused(sample, shapes, counts ? std::to_string(told.size()) + " axes" : tg::to_string(told),
                [&](const auto& x) { return call(sample, x); });
}

// The sample's shapes with one replaced by the result of change(shape).
template <class Change> void check_changed_refused(const Sample& sample, std::size_t input, Change change) {
  std::vector<Shape> shapes = shapes_of(sample);
  change(shapes[input]);
  check_shapes_refused(sample, shapes, shapes[input]);
}

template <class Check> void for_each_repeated(Check check) {
  for (const Sample& sample : table().samples)
    if (!sample.operands.empty()) check(sample);
}

}  // namespace

TEST_CASE("An axis too few is refused") {
  for_each_repeated([](const Sample& sample) {
    for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
      const Operand& operand = sample.operands[i];
      if (operand.outer != Operand::batch && (operand.axes.empty() || operand.axes[0].optional)) continue;
      if (sample.double_along && sample.inputs.size() == 1) continue;  // a scalar's axis
      check_changed_refused(sample, i, [](Shape& shape) { shape.erase(shape.begin()); });
    }
  });
}

TEST_CASE("An axis too many is refused") {
  for_each_repeated([](const Sample& sample) {
    for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
      const auto outer = sample.operands[i].outer;
      if (outer == Operand::broadcast || (outer == Operand::equal && sample.inputs.size() == 1)) continue;
      for (const std::size_t extent : {1, 2})
        check_changed_refused(sample, i, [&](Shape& shape) { shape.insert(shape.begin(), extent); });
    }
  });
}

TEST_CASE("Different extents of an axis with the same letter are refused") {
  for_each_repeated([](const Sample& sample) {
    std::map<char, std::size_t> uses;
    for (const Operand& operand : sample.operands)
      for (const auto& axis : operand.axes) ++uses[axis.letter];
    for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
      std::size_t at = sample.operands[i].outer == Operand::batch;
      for (const auto& axis : sample.operands[i].axes) {
        if (uses[axis.letter] > 1)
          for (const std::size_t more : {1, 2})
            check_changed_refused(sample, i, [&](Shape& shape) { shape[at] += more; });
        ++at;
      }
    }
  });
}

TEST_CASE("Different outer axes are refused") {
  for_each_repeated([](const Sample& sample) {
    const auto with_outer = [&](const Shape& first, const Shape& last) {
      std::vector<Shape> shapes = shapes_of(sample);
      for (Shape& shape : shapes) {
        const Shape& outer = &shape == &shapes.back() ? last : first;
        if (sample.operands[0].outer == Operand::batch) shape.erase(shape.begin());
        shape.insert(shape.begin(), outer.begin(), outer.end());
      }
      check_shapes_refused(sample, shapes, shapes.back());
    };
    if (sample.inputs.size() == 1 || sample.operands.back().outer == Operand::none) return;
    with_outer({2}, {3});
    with_outer({3}, {2});
    with_outer({2}, {0});
    if (sample.operands[0].outer == Operand::batch) return;
    with_outer({2, 3}, {3, 3});
    with_outer({2, 3}, {2});
    if (sample.operands[0].outer == Operand::broadcast) return;
    with_outer({2}, {1});
    with_outer({}, {1});
  });
}

TEST_CASE("An axis outside the input's is refused") {
  for_each_repeated([](const Sample& sample) {
    if (!sample.double_along) return;
    const bool inserts = sample.operands[0].axes.empty();
    for (const Shape& outer : {Shape{}, Shape{2}, Shape{2, 0}}) {
      std::vector<Shape> shapes = shapes_of(sample);
      for (Shape& shape : shapes) shape.insert(shape.begin(), outer.begin(), outer.end());
      const auto axes = static_cast<std::ptrdiff_t>(shapes[0].size() + inserts);
      for (const std::ptrdiff_t axis : {axes, -axes - 1, axes + 100})
        check_refused(sample, shapes, "got " + std::to_string(axis),
                      [&](const auto& x) { return sample.double_along(x, axis); });
    }
    if (inserts || !sample.operands[0].axes[0].optional) return;
    for (const std::ptrdiff_t axis : {1, -2})
      check_refused(sample, {{}}, "got " + std::to_string(axis),
                    [&](const auto& x) { return sample.double_along(x, axis); });
  });
}
