// Files that do not fit a run, and runs that cannot be saved: errors leave everything unchanged.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "checkpoint_bytes.hpp"
#include "file_parts.hpp"
#include "temporary_folder.hpp"

namespace tg = tapegrad;

namespace {

struct SmallRun {
  tg::Linear<> model{2, 1};
  tg::Array<float> mean{1.0F, 2.0F};
  tg::AdamW<float> optimizer{tg::parameters(model), {.lr = 0.5}};
  tg::RandomState random;
  tg::Generator noise{3};
  std::size_t step = 1;
  bool done = false;
  std::array<int, 2> counts{1, 2};
  std::vector<double> losses{0.5};
  std::optional<float> best;
  std::string phase = "new";  // the last field in traversal order
  TAPEGRAD_FIELDS(model, mean, optimizer, random, noise, step, done, counts, losses, best, phase)

  void train_step() {
    for (const auto& parameter : tg::parameters(model)) parameter->set_grad(parameter->value() + 1.0F);
    optimizer.step();
    mean = mean + tg::uniform<float>({2}, 0, 1, noise);
    losses.push_back(tg::uniform<double>({1}, 0, 1)(0));
    counts = {static_cast<int>(++step), -1};
    best = 0.25F;
    phase = "trained";
  }
};

FileParts file_of_trained() {
  tg::manual_seed(8);
  SmallRun run;
  for (int i = 0; i < 3; ++i) run.train_step();
  return FileParts(saved_bytes(run));
}

// A trained run's error message for a valid file modified by `spoil`. Checks that the whole run is unchanged, both its
// saved and its other state.
std::string refusal(const std::function<void(FileParts&)>& spoil, const tg::LoadOptions& options = {}) {
  FileParts file = file_of_trained();
  tg::manual_seed(9);
  SmallRun run;
  for (int i = 0; i < 5; ++i) run.train_step();
  run.model.bias.set_requires_grad(false);
  const tg::Array<float> grad = run.model.weight.grad();
  const std::string before = saved_bytes(run);
  std::string message = "none";

  SmallRun fits;
  tg::load(fits, InMemory(file.bytes()));
  CHECK(fits.phase == "trained");
  tg::load(fits, InMemory(before));  // resets the global generator to the run's state
  spoil(file);
  try {
    tg::load(run, InMemory(file.bytes()), options);
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  CHECK(saved_bytes(run) == before);
  CHECK(run.model.weight.grad() == grad);
  CHECK_FALSE(run.model.bias.requires_grad());
  const std::string front = "[load] <bytes in memory>: expected ";
  CAPTURE(message);
  CHECK(message.starts_with(front));
  return message.substr(std::min(message.size(), front.size()));
}

// The same for a file with one modified tensor.
std::string refusal_of(const std::string& name, const std::function<void(FileParts::Tensor&)>& spoil) {
  return refusal([&](FileParts& file) { spoil(file.at(name)); });
}

// The same bytes with another type or shape.
std::string refusal_as(const std::string& name, const std::string& dtype, const std::vector<std::size_t>& shape) {
  return refusal_of(name, [&](FileParts::Tensor& tensor) { tensor.dtype = dtype, tensor.shape = shape; });
}

}  // namespace

TEST_CASE("A file that lacks a field of a run is refused with the field's name") {
  const auto check = [](const std::string& name, const std::string& expected) {
    CHECK(refusal([&](FileParts& file) { file.erase(name); }) == name + expected + ", got no such tensor");
  };
  for (const char* name : {"mean", "random", "noise"}) check(name, " of shape (2)");
  for (const char* name : {"optimizer.groups.0.lr", "optimizer.state.bias.step", "step"}) check(name, " of shape ()");
  check("model.bias", " of shape (1)");
  check("losses", " of one axis");
  for (const tg::Metadata& texts : {tg::Metadata{}, tg::Metadata{{"phases", "x"}}})
    CHECK(refusal([&](FileParts& file) { file.texts = texts; }) == "phase as text in the metadata, got no such text");
}

TEST_CASE("Numbers of another type are refused, also floating-point ones") {
  CHECK(refusal_as("step", "I64", {}) == "step of dtype U64, got I64");
  CHECK(refusal_as("step", "F64", {}) == "step of dtype U64, got F64");
  CHECK(refusal_as("done", "U8", {}) == "done of dtype BOOL, got U8");
  CHECK(refusal_as("counts", "U32", {2}) == "counts of dtype I32, got U32");
  CHECK(refusal_as("counts", "F32", {2}) == "counts of dtype I32, got F32");
  CHECK(refusal_as("best", "I32", {}) == "best of dtype F32, got I32");
  CHECK(refusal_as("losses", "I64", {4}) == "losses of dtype F64, got I64");
  CHECK(refusal_as("noise", "F64", {2}) == "noise of dtype U64, got F64");
  CHECK(refusal_as("random", "I64", {2}) == "random of dtype U64, got I64");
  CHECK(refusal_as("model.weight", "I32", {1, 2}) == "model.weight of dtype F32, got I32");
  CHECK(refusal_as("optimizer.groups.0.lr", "U64", {}) == "optimizer.groups.0.lr of dtype F64, got U64");
  CHECK(refusal_as("optimizer.state.bias.step", "F64", {}) == "optimizer.state.bias.step of dtype U64, got F64");
  CHECK(refusal_as("optimizer.state.bias.exp_avg", "U32", {1}) == "optimizer.state.bias.exp_avg of dtype F32, got U32");
}

TEST_CASE("Arrays and numbers of another shape are refused with both shapes") {
  CHECK(refusal_as("model.weight", "F32", {2, 1}) == "model.weight of shape (1, 2), got (2, 1)");
  CHECK(refusal_as("mean", "F32", {2, 1}) == "mean of shape (2), got (2, 1)");
  CHECK(refusal_as("step", "U64", {1}) == "step of shape (), got (1)");
  CHECK(refusal_as("best", "F32", {1}) == "best of shape (), got (1)");
  CHECK(refusal_as("counts", "I32", {1, 2}) == "counts of shape (2), got (1, 2)");
  CHECK(refusal_as("losses", "F64", {2, 2}) == "losses of one axis, got (2, 2)");
  CHECK(refusal_as("optimizer.groups.0.betas", "F64", {2, 1}) == "optimizer.groups.0.betas of shape (2), got (2, 1)");
  CHECK(refusal_as("optimizer.state.weight.exp_avg_sq", "F32", {2}) ==
        "optimizer.state.weight.exp_avg_sq of shape (1, 2), got (2)");
  CHECK(refusal_of("noise", [](auto& tensor) { tensor.shape = {3}, tensor.bytes += raw<std::uint64_t>({0}); }) ==
        "noise of shape (2), got (3)");
  CHECK(refusal_of("random", [](auto& tensor) { tensor.shape = {1}, tensor.bytes.resize(8); }) ==
        "random of shape (2), got (1)");
}

TEST_CASE("An invalid bool is found before anything changes, also in the last field") {
  CHECK(refusal_of("done", [](auto& tensor) { tensor.bytes = "\2"; }) == R"("done" with bools of 0 or 1, got 2)");
}

namespace {

// Expects saving over a file to fail and to leave the file unchanged.
template <class M> void check_not_saved(const M& model, const tg::Metadata& metadata, const std::string& message) {
  const TemporaryFolder folder;
  tg::save(One(), folder / "a.safetensors");
  const std::string before = bytes_of(folder / "a.safetensors");
  CHECK_THROWS_WITH_AS(tg::save(model, folder / "a.safetensors", metadata), ("[save] expected " + message).c_str(),
                       std::invalid_argument);
  CHECK(bytes_of(folder / "a.safetensors") == before);
  CHECK(folder.files() == 1);
}

// A model with arbitrary texts as names.
using Named = std::map<std::string, tg::Parameter<float>>;

// Two paths with the name x.a.b.c, because keys may contain dots.
template <class V> struct Twins {
  std::map<std::string, std::map<std::string, V>> x{{"a", {{"b.c", V()}}}, {"a.b", {{"c", V()}}}};
  tg::Parameter<float> weight{tg::Array<float>{1.0F}};
  TAPEGRAD_FIELDS(x, weight)
};

}  // namespace

TEST_CASE("Names and texts that are not UTF-8, and the field name __metadata__, are not saved") {
  SmallRun run;
  run.phase = "\xe9t\xe9";
  check_not_saved(run, {}, R"(names and texts in UTF-8, got "\ufffdt\ufffd")");
  const Named named{{"\xe9t\xe9", tg::Parameter<float>(tg::Array<float>{1.0F})}};
  check_not_saved(named, {}, R"(names and texts in UTF-8, got "\ufffdt\ufffd")");
  check_not_saved(One(), {{"name", "\xe9t\xe9"}}, R"(names and texts in UTF-8, got "\ufffdt\ufffd")");
  run.phase = "fine";
  check_not_saved(run, {{"phase", "taken"}}, R"(each name once, got "phase" twice)");
  check_not_saved(run, {{"step", "taken"}}, R"(each name once, got "step" twice)");
  check_not_saved(run, {{"model.weight", "taken"}}, R"(each name once, got "model.weight" twice)");
}

TEST_CASE("An array under the format's name for texts is refused, and a text is saved") {
  const Named model{{"__metadata__", tg::Parameter<float>(tg::Array<float>{1.0F})}};
  check_not_saved(model, {}, R"(names of arrays other than "__metadata__", which the file format reserves)");
  check_not_saved(model, {{"a", "text"}},
                  R"(names of arrays other than "__metadata__", which the file format reserves)");
  const tg::Metadata metadata{{"__metadata__", "text"}};
  CHECK(tg::load_metadata(tg::save_bytes(One(), metadata)) == metadata);
}

TEST_CASE_TEMPLATE("Duplicate field names are refused when saving and loading", V, int, std::string,
                   std::vector<float>) {
  Twins<V> twins, other;
  check_not_saved(twins, {}, R"(each name once, got "x.a.b.c" twice)");
  FileParts file;
  file.add<float>("weight", "F32", {2.0F});
  if constexpr (std::is_same_v<V, int>)
    file.tensors.push_back({"x.a.b.c", "I32", {}, raw({7})});
  else if constexpr (std::is_same_v<V, std::string>)
    file.texts = {{"x.a.b.c", "seven"}};
  else
    file.add<float>("x.a.b.c", "F32", {7.0F});
  CHECK_THROWS_WITH_AS(tg::load(twins, InMemory(file.bytes())), doctest::Contains("got two fields of that name"),
                       std::runtime_error);
  CHECK(twins.x == other.x);
  CHECK(twins.weight.item() == 1.0F);
}
