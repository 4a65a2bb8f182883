// Every kind of field, saved to a file and loaded.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint_bytes.hpp"
#include "temporary_folder.hpp"
#include "text.hpp"

namespace tg = tapegrad;

namespace {

using namespace std::string_literals;

template <class Number> constexpr Number kMin = std::numeric_limits<Number>::lowest();
template <class Number> constexpr Number kMax = std::numeric_limits<Number>::max();

struct Numbers {
  bool flag = false;
  signed char i8 = 0;
  unsigned char u8 = 0;
  short i16 = 0;
  unsigned short u16 = 0;
  int i32 = 0;
  unsigned u32 = 0;
  long i64 = 0;
  unsigned long u64 = 0;
  long long long_i64 = 0;
  unsigned long long long_u64 = 0;
  float f32 = 0;
  double f64 = 0;
  TAPEGRAD_FIELDS(flag, i8, u8, i16, u16, i32, u32, i64, u64, long_i64, long_u64, f32, f64)
};

Numbers extreme_numbers() {
  return {true,
          kMin<signed char>,
          kMax<unsigned char>,
          kMin<short>,
          kMax<unsigned short>,
          kMin<int>,
          kMax<unsigned>,
          kMin<long>,
          kMax<unsigned long>,
          kMax<long long>,
          kMax<unsigned long long> - 1,
          std::numeric_limits<float>::denorm_min(),
          -0.0};
}

struct Arrays {
  tg::Parameter<float> weight{tg::Array<float>{0.0F, 0.0F}};
  tg::Parameter<double> wide_weight{tg::Array<double>{0.0}};
  tg::Parameter<float> undefined;
  tg::Array<float> mean{0.0F, 0.0F, 0.0F};
  tg::IntArray ids{{0, 0}, {0, 0}};
  tg::BoolArray mask{false, false};
  tg::Tensor<double> constant{tg::Array<double>{0.0}};
  tg::Generator generator{1};
  TAPEGRAD_FIELDS(weight, wide_weight, undefined, mean, ids, mask, constant, generator)
};

Arrays some_arrays() {
  Arrays arrays;
  arrays.weight.set_value({1.5F, -2.5F});
  arrays.wide_weight.set_value({0.1});
  arrays.mean = {1.0F, 2.0F, 3.0F};
  arrays.ids = {{1, 2}, {3, std::numeric_limits<std::int64_t>::min()}};
  arrays.mask = {true, false};
  arrays.constant = tg::Array<double>{0.3};
  arrays.generator = tg::Generator(7);
  arrays.generator.next_key();
  return arrays;
}

struct Lists {
  std::vector<double> losses;
  std::vector<bool> seen;
  std::vector<std::uint16_t> codes{};
  std::array<int, 3> counts{};
  std::array<bool, 2> done{};
  std::vector<std::string> words{"", ""};
  std::string text;
  TAPEGRAD_FIELDS(losses, seen, codes, counts, done, words, text)
};

struct Maybe {
  std::optional<double> best;
  std::optional<std::vector<int>> picked;
  std::optional<tg::IntArray> order;
  std::optional<tg::Tensor<float>> bias;
  std::optional<tg::Generator> generator;
  std::optional<std::string> note;
  std::size_t step = 0;
  TAPEGRAD_FIELDS(best, picked, order, bias, generator, note, step)
};

Maybe with_all() {
  return {.best = 0.5,
          .picked = std::vector{3, 1},
          .order = tg::IntArray{{4, 5}},
          .bias = tg::Tensor<float>(tg::Array<float>{1.0F}),
          .generator = tg::Generator(3),
          .note = "a note",
          .step = 2};
}

template <class Run> Run back(const Run& run, Run into = {}) {
  tg::load(into, InMemory(saved_bytes(run)));  // not aligned
  return into;
}

}  // namespace

TEST_CASE("Numbers of every width are restored in their own types") {
  const Numbers numbers = back(extreme_numbers());
  CHECK(numbers.tapegrad_fields() == extreme_numbers().tapegrad_fields());
  CHECK(std::bit_cast<std::uint64_t>(numbers.f64) == std::uint64_t{1} << 63);

  const auto tensors = tg::read_safetensors(tg::save_bytes(numbers));
  const std::map<std::string, std::string_view> dtypes{
      {"flag", "bool"},   {"i8", "int8"},     {"u8", "uint8"},       {"i16", "int16"},  {"u16", "uint16"},
      {"i32", "int32"},   {"u32", "uint32"},  {"i64", "int64"},      {"u64", "uint64"}, {"long_i64", "int64"},
      {"f32", "float32"}, {"f64", "float64"}, {"long_u64", "uint64"}};
  CHECK(tensors.size() == dtypes.size());
  for (const auto& named : dtypes) {
    CAPTURE(named.first);
    CHECK(tensors.at(named.first).dtype() == named.second);
    CHECK(tensors.at(named.first).shape().empty());
  }
  CHECK(*tensors.at("long_u64").as<std::uint64_t>().data() == kMax<std::uint64_t> - 1);
}

TEST_CASE("A run's numbers are in the file byte by byte, wide ones first") {
  struct Run {
    bool done = true;
    std::int64_t step = -2;
    double loss = 0.5;
    std::string phase = "warm";
    std::uint16_t code = 258;
    TAPEGRAD_FIELDS(done, step, loss, phase, code)
  };
  std::string header = R"({"__metadata__":{"note":"x","phase":"warm"},)"
                       R"("code":{"data_offsets":[16,18],"dtype":"U16","shape":[]},)"
                       R"("done":{"data_offsets":[18,19],"dtype":"BOOL","shape":[]},)"
                       R"("loss":{"data_offsets":[0,8],"dtype":"F64","shape":[]},)"
                       R"("step":{"data_offsets":[8,16],"dtype":"I64","shape":[]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(saved_bytes(Run(), {{"note", "x"}}) ==
        checkpoint(header, raw({0.5}) + raw<std::int64_t>({-2}) + raw<std::uint16_t>({258}) + '\1'));
}

TEST_CASE("NaN and infinities are saved bit by bit, as numbers, in arrays and in vectors") {
  struct Run {
    double loss = 0;
    tg::Array<float> mean{0.0F, 0.0F};
    std::vector<double> losses;
    tg::Parameter<float> weight{mean};
    TAPEGRAD_FIELDS(loss, mean, losses, weight)
  };
  const double odd = std::bit_cast<double>(0x7ff8'0000'0000'0123);  // a NaN with a payload
  const float infinite = std::numeric_limits<float>::infinity();
  const Run run{odd, {-infinite, std::numeric_limits<float>::quiet_NaN()}, {infinite, odd, -odd}};
  const Run loaded = back(run);
  CHECK(std::bit_cast<std::uint64_t>(loaded.loss) == std::bit_cast<std::uint64_t>(odd));
  CHECK(loaded.mean(0) == -infinite);
  CHECK(loaded.weight.value()(0) == -infinite);
  CHECK(loaded.losses.size() == 3);
  CHECK(saved_bytes(loaded) == saved_bytes(run));
}

TEST_CASE("Parameters, arrays, tensors and generators are restored in their shapes") {
  const Arrays run = some_arrays(), loaded = back(run);
  CHECK(loaded.weight.value() == run.weight.value());
  CHECK(loaded.wide_weight.value() == run.wide_weight.value());
  CHECK_FALSE(loaded.undefined.defined());
  CHECK(loaded.mean == run.mean);
  CHECK(loaded.ids == run.ids);
  CHECK(loaded.mask == run.mask);
  CHECK(loaded.constant.value() == run.constant.value());
  CHECK(loaded.generator == run.generator);
  CHECK(saved_bytes(loaded) == saved_bytes(run));

  const auto tensors = tg::read_safetensors(tg::save_bytes(run));
  CHECK(tensors.size() == 7);
  CHECK(tensors.at("ids").shape() == tg::Shape{2, 2});
  CHECK(tensors.at("mask").dtype() == "bool");
  CHECK(tensors.at("generator").dtype() == "uint64");
}

TEST_CASE("Vectors are restored with their length, and texts with any content") {
  const Lists run{.losses = {0.5, 0.25, 0.125},
                  .seen = {true, false, true, true},
                  .codes = {1, 65535},
                  .counts = {1, -2, 3},
                  .done = {false, true},
                  .words = {"Überzug", "日本\n\"\\"},
                  .text = "a\0b"s};
  for (const Lists& into :
       {Lists(), Lists{.losses = {9, 9, 9, 9, 9}, .seen = {false}, .text = "longer than what it was"}})
    CHECK(back(run, into).tapegrad_fields() == run.tapegrad_fields());
  const Lists empty = back(Lists(), run);
  CHECK(empty.tapegrad_fields() == Lists().tapegrad_fields());

  const auto tensors = tg::read_safetensors(tg::save_bytes(run));
  CHECK(tensors.size() == 5);
  CHECK(tensors.at("seen").dtype() == "bool");
  CHECK(tg::load_metadata(tg::save_bytes(run)) ==
        tg::Metadata{{"words.0", run.words[0]}, {"words.1", run.words[1]}, {"text", run.text}});
}

TEST_CASE("An optional field exists after loading if it was saved") {
  const Maybe run = with_all();
  for (Maybe into : {Maybe(), with_all()}) {
    into.order = tg::IntArray{9, 9, 9};  // different shape
    into.note.reset();
    const Maybe loaded = back(run, into);
    CHECK(loaded.best == run.best);
    CHECK(loaded.picked == run.picked);
    CHECK(loaded.order == run.order);
    REQUIRE(loaded.bias.has_value());
    CHECK(loaded.bias->value() == run.bias->value());
    CHECK(loaded.generator == run.generator);
    CHECK(loaded.note == run.note);
    CHECK(saved_bytes(loaded) == saved_bytes(run));

    const Maybe none = back(Maybe(), with_all());
    CHECK_FALSE((none.best || none.picked || none.order || none.bias || none.generator || none.note));
    CHECK(none.step == 0);
  }
}

TEST_CASE("Optional layers and maps of layers are saved if they exist, and then required in the file") {
  struct Model {
    std::map<std::string, tg::Linear<>> heads;
    std::optional<tg::Linear<>> extra;
    std::optional<tg::Parameter<float>> scale;
    TAPEGRAD_FIELDS(heads, extra, scale)
  };
  const tg::Linear<> one(2, 1), two(2, 1), three(2, 1);
  const Model full{{{"a", one}, {"b", two}}, three, tg::Parameter<float>(tg::Array<float>{2.0F})};
  const Model into{{{"a", two}, {"b", three}}, one, tg::Parameter<float>(tg::Array<float>{0.0F})};
  const Model loaded = back(full, into);
  CHECK(loaded.heads.at("a").weight.value() == one.weight.value());
  CHECK(loaded.heads.at("b").bias.value() == two.bias.value());
  CHECK(loaded.extra->weight.value() == three.weight.value());
  CHECK(loaded.scale->item() == 2.0F);

  Model without_b{{{"a", two}}, one, into.scale}, without_extra{into.heads, {}, into.scale};
  CHECK_THROWS_WITH_AS(tg::load(without_b, tg::save_bytes(full)), doctest::Contains("\"heads.b.bias\""),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(tg::load(without_extra, tg::save_bytes(full)), doctest::Contains("\"extra.bias\""),
                       std::runtime_error);
  Model with_extra = into;
  CHECK_THROWS_WITH_AS(tg::load(with_extra, tg::save_bytes(without_extra)),
                       doctest::Contains("expected extra.weight of shape (1, 2), got no such tensor"),
                       std::runtime_error);
  CHECK(saved_bytes(with_extra) == saved_bytes(into));
}

TEST_CASE("Constructor arguments are not saved, and loading leaves them unchanged") {
  struct Model {
    tg::Dropout dropout{0.25};
    tg::MultiHeadAttention<> attention{4, 2};
    tg::Array<float> mean{1.0F};
    double scale = 0.5;
    TAPEGRAD_FIELDS(dropout, attention, mean)
    TAPEGRAD_SETTINGS(scale)
  };
  Model model;
  CHECK(tg::read_safetensors(tg::save_bytes(model)).size() == 9);  // four weights, four biases, the mean
  Model other;
  other.dropout.p = 0.75;
  other.scale = 2;
  tg::eval(other);
  tg::load(other, tg::save_bytes(model));
  CHECK(other.dropout.p == 0.75);
  CHECK(other.scale == 2);
  CHECK_FALSE(other.dropout.training);
  CHECK(other.attention.q_proj.weight.value() == model.attention.q_proj.weight.value());
}

TEST_CASE("Metadata is restored, in any language, from a file and from the same bytes in memory") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  for (const tg::Metadata& metadata :
       {tg::Metadata{}, tg::Metadata{{"vocabulary", "aä日\n\"\\"}, {"", "empty"}, {"nothing", ""}}}) {
    tg::save(One(), path, metadata);
    CHECK(tg::load_metadata(path) == metadata);
    CHECK(bytes_of(path) == saved_bytes(One(), metadata));
    CHECK(folder.files() == 1);
  }
  CHECK_THROWS_WITH_AS(tg::save_bytes(One(), {{"name", "\xe9t\xe9"}}),
                       doctest::Contains("expected names and texts in UTF-8"), std::invalid_argument);
}

TEST_CASE("Loading keeps gradients and values saved by a tape") {
  const One saved;
  One model;
  model.w.set_value(tg::Array<float>{5.0f, 6.0f});
  tg::Tape tape;
  const auto loss = tg::sum(model.w * model.w);
  tg::load(model, tg::save_bytes(saved));
  loss.backward();
  CHECK(model.w.grad() == tg::Array<float>{10.0f, 12.0f});
  CHECK(model.w.value() == saved.w.value());
}

TEST_CASE("A run prints its numbers, the shapes of its arrays, and its optimizer's current state") {
  struct Run {
    tg::Linear<> model{2, 1};
    tg::AdamW<float> optimizer{tg::parameters(model), {.lr = 0.25}};
    tg::RandomState random;
    tg::Generator noise{1};
    tg::IntArray order{0, 1, 2};
    std::size_t step = 7;
    double best = 0.5;
    bool done = false;
    std::vector<double> losses{0.5, 0.25};
    std::string phase = "warm";
    std::optional<int> tries;
    std::optional<tg::Array<float>> mean;
    TAPEGRAD_FIELDS(model, optimizer, random, noise, order, step, best, done, losses, phase, tries, mean)
  } run;
  CHECK(listing(run) ==
        "Run(step=7, best=0.5, done=false)          order (3)\n"
        "  model                            Linear  weight (1, 2), bias (1)  3\n"
        "  optimizer                        AdamW\n"
        "    groups.0                       AdamWOptions(lr=0.25, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01)\n"
        "    state.bias                     AdamState(step=0)\n"
        "    state.weight                   AdamState(step=0)\n"
        "total                                                               3\n");
  run.model.bias.set_grad(tg::Array<float>{1.0F});
  run.optimizer.step();
  run.tries = 3;
  run.mean = tg::Array<float>{0.0F, 0.0F};
  const std::string text = listing(run);
  CHECK(text.starts_with("Run(step=7, best=0.5, done=false, tries=3) "));
  CHECK(text.find(" order (3), mean (2)\n") != text.npos);
  CHECK(text.find("AdamState(step=1) ") != text.npos);
  CHECK(text.find(" exp_avg (1), exp_avg_sq (1)\n") != text.npos);
  CHECK(text.find(" AdamState(step=0)\n") != text.npos);
}
