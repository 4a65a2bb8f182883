#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkpoint_bytes.hpp"
#include "close.hpp"
#include "temporary_folder.hpp"

namespace tg = tapegrad;
namespace fs = std::filesystem;

namespace {

template <class T> struct Pair {
  tg::Linear<T> first, second;
  TAPEGRAD_FIELDS(first, second)
};

template <class T> Pair<T> make_pair(std::uint64_t seed) {
  tg::manual_seed(seed);
  return {tg::Linear<T>(2, 3), tg::Linear<T>(3, 1, {.bias = false})};
}

}  // namespace

TEST_CASE("Arrays larger than the conversion buffer are converted") {
  const TemporaryFolder folder;
  const tg::Linear<float> single(100, 101);
  tg::Linear<double> wide(100, 101);
  tg::save(single, folder / "a.safetensors");
  tg::load(wide, folder / "a.safetensors");
  check_close(wide.weight.value(), single.weight.value(), 0);
}

TEST_CASE("A file has the safetensors layout byte by byte") {
  const TemporaryFolder folder;
  Pair<float> model{tg::Linear<float>(2, 1), tg::Linear<float>(1, 1, {.bias = false})};
  model.first.weight.set_value(tg::Array<float>{{1.0f, 2.0f}});
  model.first.bias.set_value(tg::Array<float>{3.0f});
  model.second.weight.set_value(tg::Array<float>(tg::Shape{1, 1}, 4.0f));
  tg::save(model, folder / "a.safetensors", {{"step", "7"}});
  std::string header = R"({"__metadata__":{"step":"7"},)"
                       R"("first.bias":{"data_offsets":[0,4],"dtype":"F32","shape":[1]},)"
                       R"("first.weight":{"data_offsets":[4,12],"dtype":"F32","shape":[1,2]},)"
                       R"("second.weight":{"data_offsets":[12,16],"dtype":"F32","shape":[1,1]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(bytes_of(folder / "a.safetensors") == checkpoint(header, raw({3.0f, 1.0f, 2.0f, 4.0f})));
}

TEST_CASE("save_bytes returns the bytes of the file from save, and load accepts them") {
  struct Run {
    Pair<double> model = make_pair<double>(1);
    std::optional<tg::Array<float>> none;
    std::string phase = "begin\n";
    tg::Generator noise{7};
    tg::AdamW<double> optimizer{tg::parameters(model)};
    TAPEGRAD_FIELDS(model, none, phase, noise, optimizer)
  } run, loaded;
  for (const auto& parameter : tg::parameters(run.model)) parameter->set_grad(tg::Array<double>(parameter->shape(), 1));
  run.optimizer.step();
  run.phase = "end";
  const TemporaryFolder folder;
  for (const tg::Metadata& metadata : {tg::Metadata{}, tg::Metadata{{"name", "a run"}}}) {
    tg::save(run, folder / "a.safetensors", metadata);
    const std::vector<std::byte> bytes = tg::save_bytes(run, metadata);
    CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == bytes_of(folder / "a.safetensors"));
    CHECK(tg::load_metadata(bytes) == tg::load_metadata(folder / "a.safetensors"));
    CHECK(folder.files() == 1);
  }
  tg::load(loaded, std::span<const std::byte>(tg::save_bytes(run)));
  CHECK(loaded.phase == "end");
  CHECK(tg::save_bytes(loaded) == tg::save_bytes(run));
  CHECK_THROWS_WITH_AS(tg::save_bytes(run, {{"name", "\xe9t\xe9"}}),
                       doctest::Contains("expected names and texts in UTF-8"), std::invalid_argument);
}

TEST_CASE("Files of other writers may have tensors in any order, and scalars") {
  const TemporaryFolder folder;
  struct Two {
    tg::Parameter<float> a{tg::Array<float>{0.0f}}, b{tg::Array<float>(tg::Shape{}, 0.0f)};
    TAPEGRAD_FIELDS(a, b)
  } model;
  write_bytes(folder / "a.safetensors", checkpoint(R"({"b":{"dtype":"F64","shape":[],"data_offsets":[0,8]}, )"
                                                   R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                                                   raw({2.5}) + raw({1.5f})));
  tg::load(model, folder / "a.safetensors");
  CHECK(model.a.value()(0) == 1.5f);
  CHECK(model.b.item() == 2.5f);
}

TEST_CASE("Metadata is restored, in any language") {
  const TemporaryFolder folder;
  const tg::Metadata metadata{{"vocabulary", "aä日\n\"\\"}, {"", "empty"}, {"nothing", ""}};
  tg::save(One(), folder / "a.safetensors", metadata);
  CHECK(tg::load_metadata(folder / "a.safetensors") == metadata);
  tg::save(One(), folder / "a.safetensors");
  CHECK(tg::load_metadata(folder / "a.safetensors").empty());
}

TEST_CASE("Loading keeps gradients and values saved by a tape") {
  const TemporaryFolder folder;
  One model;
  tg::save(model, folder / "a.safetensors");
  model.w.set_value(tg::Array<float>{5.0f, 6.0f});
  tg::Tape tape;
  const auto loss = tg::sum(model.w * model.w);
  tg::load(model, folder / "a.safetensors");
  loss.backward();
  CHECK(model.w.grad() == tg::Array<float>{10.0f, 12.0f});
  CHECK(model.w.value() == tg::Array<float>{1.0f, 2.0f});
}

TEST_CASE("An unreadable file is refused by name") {
  const TemporaryFolder folder;
  One model;
  CHECK_THROWS_WITH_AS(tg::load(model, folder / "a.safetensors"),
                       doctest::Contains("a.safetensors: cannot be opened: No such file or directory"),
                       std::runtime_error);
  fs::create_directory(folder / "sub");
  CHECK_THROWS_WITH_AS(tg::load(model, folder / "sub"), doctest::Contains("sub: expected a file, got something else"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(tg::load_metadata(folder / "a.safetensors"), doctest::Contains("[load_metadata] "),
                       std::runtime_error);
  CHECK_THROWS_AS(tg::load_metadata("/dev/zero"), std::runtime_error);
}
