// LoadOptions: matching names in a file and a run.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include "checkpoint_bytes.hpp"
#include "file_parts.hpp"

namespace tg = tapegrad;

namespace {

struct OldNet {
  tg::Linear<> head{2, 1};
  tg::Array<float> mean{0.0F};
  TAPEGRAD_FIELDS(head, mean)
};

struct OldRun {
  OldNet model;
  tg::AdamW<float> optimizer{tg::parameters(model), {.lr = 0.5}};
  std::size_t step = 0;
  std::string phase = "new";
  std::optional<double> best;
  TAPEGRAD_FIELDS(model, optimizer, step, phase, best)

  void train_step() {
    for (const auto& parameter : tg::parameters(model)) parameter->set_grad(parameter->value() + 1.0F);
    optimizer.step();
    model.mean = model.mean + 1.0F;
    ++step;
    best = static_cast<double>(step);
    phase = "trained";
  }
};

OldRun trained(int steps) {
  OldRun run;
  for (int i = 0; i < steps; ++i) run.train_step();
  return run;
}

template <class M> FileParts parts_of(const M& model) { return FileParts(saved_bytes(model)); }

void load(auto& model, const FileParts& file, const tg::LoadOptions& options = {}) {
  tg::load(model, InMemory(file.bytes()), options);
}

// Expects loading to fail with the message and to leave the whole run unchanged.
void check_refused(auto& model, const FileParts& file, const tg::LoadOptions& options, const std::string& message) {
  const std::string before = saved_bytes(model);
  CHECK_THROWS_WITH_AS(load(model, file, options), ("[load] <bytes in memory>: " + message).c_str(),
                       std::runtime_error);
  CHECK(saved_bytes(model) == before);
}

}  // namespace

TEST_CASE("A prefix selects a part of a file, at any depth") {
  struct Program {
    OldRun run = trained(2);
    OldNet model;  // starts equal to run.model
    TAPEGRAD_FIELDS(run, model)
  };
  const Program program;
  const FileParts file = parts_of(program);
  OldNet model;
  load(model, file, {.prefix = "run.model."});
  CHECK(saved_bytes(model) == saved_bytes(program.run.model));
  load(model, file, {.prefix = "model."});
  CHECK(saved_bytes(model) == saved_bytes(program.model));
  tg::Linear<> head(2, 1);
  load(head, file, {.prefix = "run.model.head."});
  CHECK(head.weight.value() == program.run.model.head.weight.value());
  OldRun run;
  load(run, file, {.prefix = "run."});  // also its text
  CHECK(saved_bytes(run) == saved_bytes(program.run));
  CHECK(run.phase == "trained");
}

TEST_CASE("An error for a missing name includes the prefix, and a missing part is an error") {
  OldNet model;
  check_refused(model, parts_of(trained(1)), {.prefix = "mode."},
                "expected mode.head.weight of shape (1, 2), got no such tensor; use .prefix = \"model.\" for "
                "\"model.head.weight\"");
  check_refused(model, parts_of(OldNet()), {.prefix = "model."},
                "expected model.head.weight of shape (1, 2), got no such tensor; use .prefix = \"\" for "
                "\"head.weight\"");
  OldRun run;
  FileParts file = parts_of(trained(1));
  file.texts.clear();
  for (auto& tensor : file.tensors) tensor.name.insert(0, "a.");
  check_refused(run, file, {.prefix = "a."}, "expected a.phase as text in the metadata, got no such text");
}

TEST_CASE("An error for a missing name suggests the shortest prefix under which the file has a tensor that fits") {
  tg::Linear<> head(2, 1);
  FileParts file = parts_of(OldNet());
  const std::string missing = "expected weight of shape (1, 2), got no such tensor";
  check_refused(head, file, {}, missing + "; use .prefix = \"head.\" for \"head.weight\"");
  load(head, file, {.prefix = "head.", .ignore = {"mean"}});

  file.add<float>("a.head.weight", "F32", {1, 2});
  file.tensors.back().shape = {1, 2};
  file.add<float>("b.weight", "F32", {1, 2});  // another shape
  file.add<float>("overweight", "F32", {1, 2});
  file.tensors.back().shape = {1, 2};
  check_refused(head, file, {}, missing + "; use .prefix = \"head.\" for \"head.weight\"");
  const auto same = [](std::string name) { return name; };
  check_refused(head, file, {.rename = same}, missing);  // whose names are not the file's
  file.erase("head.weight");
  check_refused(head, file, {}, missing + "; use .prefix = \"a.head.\" for \"a.head.weight\"");
  file.erase("a.head.weight");
  check_refused(head, file, {}, missing);
}

TEST_CASE("rename maps a file's names without the prefix to the model's, also those of texts") {
  const OldRun saved = trained(2);
  FileParts file = parts_of(saved);
  for (auto& tensor : file.tensors) {
    const bool is_head = tensor.name.starts_with("model.head.");
    tensor.name = "_orig." + (is_head ? "model.fc." + tensor.name.substr(11) : tensor.name);
  }
  file.texts = {{"_orig.phase", saved.phase}, {"phase", "not this one"}};
  const auto rename = [](std::string name) {
    return name.starts_with("model.fc.") ? "model.head." + name.substr(9) : name;
  };
  OldRun run;
  load(run, file, {.prefix = "_orig.", .rename = rename});
  CHECK(saved_bytes(run) == saved_bytes(saved));
}

TEST_CASE("split cuts a tensor of the file into several of the model, after renaming") {
  struct Net {
    tg::Linear<> a{2, 1}, b{2, 1};
    tg::IntArray first{0, 0}, second{0, 0};
    TAPEGRAD_FIELDS(a, b, first, second)
  };
  FileParts file;
  file.add<std::int64_t>("ids", "I64", {5, 6, 7, 8});
  file.add<float>("both.kernel", "F32", {1, 2, 3, 4});
  file.tensors.back().shape = {2, 2};
  file.add<float>("both.bias", "F32", {7, 8});
  const auto rename = [](std::string name) { return name == "both.kernel" ? "both.weight" : name; };
  const tg::LoadOptions options{.rename = rename,
                                .split = {{"both.weight", {"a.weight", "b.weight"}},
                                          {"both.bias", {"a.bias", "b.bias"}},
                                          {"ids", {"first", "second"}}}};
  Net net;
  load(net, file, options);
  CHECK(net.a.weight.value() == tg::Array<float>{{1, 2}});
  CHECK(net.b.weight.value() == tg::Array<float>{{3, 4}});
  CHECK(net.a.bias.value() == tg::Array<float>{7});
  CHECK(net.b.bias.value() == tg::Array<float>{8});
  CHECK(net.first == tg::IntArray{5, 6});
  CHECK(net.second == tg::IntArray{7, 8});

  file.erase("both.bias");
  file.add<float>("both.bias", "F32", {0, 0, 0});
  check_refused(net, file, options, "expected \"both.bias\" with an axis 0 divisible by 2 to split, got (3)");
  file.erase("both.bias");
  file.add<float>("both.bias", "F32", {0, 0, 0, 0});
  check_refused(net, file, options, "expected a.bias of shape (1), got (2) from \"both.bias\"");
  file.erase("both.bias");
  file.add<float>("both.bias", "F32", {0});
  file.tensors.back().shape = {};
  check_refused(net, file, options, "expected \"both.bias\" with an axis 0 divisible by 2 to split, got ()");
  file.erase("both.bias");
  file.add<float>("both.bias", "F32", {7, 8});
  file.add<float>("a.bias", "F32", {7});
  CHECK_THROWS_AS(load(net, file, options), std::runtime_error);  // a.bias twice
}

TEST_CASE("Two names renamed to the same name are refused, of texts only if a field needs it") {
  struct Texts {
    std::string phase = "old";
    tg::Parameter<float> weight{tg::Array<float>{0.0F}};
    TAPEGRAD_FIELDS(phase, weight)
  } texts;
  FileParts file;
  file.add<float>("x.weight", "F32", {1.0F});
  file.texts = {{"a.phase", "a"}, {"b.phase", "b"}, {"a.note", "c"}, {"b.note", "d"}};
  const tg::LoadOptions options{.rename = [](const std::string& name) { return name.substr(name.find('.') + 1); }};
  check_refused(texts, file, options, "expected phase as text in the metadata, got two texts after renaming");
  file.texts.erase("b.phase");
  load(texts, file, options);
  CHECK(texts.phase == "a");
  file.add<float>("y.weight", "F32", {1.0F});
  const std::string before = saved_bytes(texts);
  CHECK_THROWS_WITH_AS(load(texts, file, options),
                       doctest::Contains("got \"y.weight\" and \"x.weight\" for \"weight\""), std::runtime_error);
  CHECK(saved_bytes(texts) == before);
}

TEST_CASE("allow_missing leaves exactly the named fields unchanged") {
  const OldRun saved = trained(2);
  FileParts file = parts_of(saved);
  file.erase("step");
  file.erase("best");
  file.texts.clear();
  OldRun run = trained(5);
  check_refused(run, file, {.allow_missing = {"step", "best"}},
                "expected phase as text in the metadata, got no such text");
  check_refused(run, file, {.allow_missing = {"phase", "best", "ste"}},
                "expected step of shape (), got no such tensor");
  run.phase = "kept";
  load(run, file, {.allow_missing = {"step", "phase", "best"}});
  CHECK(run.step == 5);
  CHECK(run.phase == "kept");
  CHECK(run.best == 5.0);
  CHECK(saved_bytes(run.model) == saved_bytes(saved.model));

  load(run, file, {.allow_missing = {"step", "phase"}});  // optional fields not named are reset
  CHECK_FALSE(run.best.has_value());
}

TEST_CASE("A model's file loads into a run, whose optimizer keeps its state or starts anew") {
  const OldNet saved = trained(2).model;
  FileParts file = parts_of(saved);
  for (auto& tensor : file.tensors) tensor.name.insert(0, "model.");
  OldRun run = trained(3);
  const auto state_of = [](const OldRun& r) { return r.optimizer.state().at("head.weight"); };
  const tg::Array<float> moment = state_of(run).exp_avg.value();
  load(run, file, {.allow_missing = {"optimizer.*", "step", "phase", "best"}});
  CHECK(saved_bytes(run.model) == saved_bytes(saved));
  CHECK(state_of(run).step == 3);
  CHECK(state_of(run).exp_avg.value() == moment);

  // Moments exist only after the first step: without their names here, a file without them resets them.
  load(run, file, {.allow_missing = {"optimizer.groups.*", "*.step", "step", "phase", "best"}});
  CHECK(state_of(run).step == 3);
  CHECK_FALSE(state_of(run).exp_avg.has_value());
}

TEST_CASE("ignore skips extra names of any type and shape") {
  const OldNet saved;
  FileParts file = parts_of(saved);
  file.add<double>("extra.a", "F64", {1.0, 2.0});
  file.add<unsigned char>("extra.b", "U8", {7});
  OldNet model;
  check_refused(model, file, {}, R"(expected only tensors of the model, got "extra.a" of shape (2))");
  check_refused(model, file, {.ignore = {"extra.a"}},
                R"(expected only tensors of the model, got "extra.b" of shape (1))");
  check_refused(model, file, {.ignore = {"extra", "*.c", "xtra.*"}},
                R"(expected only tensors of the model, got "extra.a" of shape (2))");
  load(model, file, {.ignore = {"extra.*"}});
  CHECK(saved_bytes(model) == saved_bytes(saved));

  // Ignored names must still match in shape if the model has them.
  file.at("mean").shape = {1, 1};
  check_refused(model, file, {.ignore = {"*"}}, "expected mean of shape (1), got (1, 1)");
}

TEST_CASE("A star matches any text, also an empty one, any number of times") {
  FileParts file = parts_of(OldNet());
  file.add<float>("blocks.10.norm.weight", "F32", {1.0F});
  OldNet model;
  for (const char* matching : {"*", "blocks.*", "*.weight", "blocks.*.weight", "blocks.*.norm.*", "**.norm.**",
                               "*blocks.10.norm.weight*", "blocks.10.norm.weight", "b*1*0*w*t"})
    CHECK_NOTHROW_MESSAGE(load(model, file, {.ignore = {"none", matching}}), matching);
  for (const char* other :
       {"", "blocks", "blocks.*.bias", "*.norm", "locks.*", "blocks.1.*", "blocks.?0.norm.weight", "b*0*1*t"})
    CHECK_THROWS_AS_MESSAGE(load(model, file, {.ignore = {"none", other}}), std::runtime_error, other);
}
