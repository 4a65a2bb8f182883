// GPT-2's and Llama's weights from folders in Hugging Face's format, compared with PyTorch's results in
// fixtures/gpt2.json; and folders saved by the program.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "../../../examples/common/shift.hpp"
#include "../../../examples/gpt2/pretrained.hpp"
#include "../../../examples/gpt2/weights.hpp"
#include "../../gpt2/checkpoint_folder.hpp"
#include "../../gpt2/close_to_fixture.hpp"
#include "temporary_folder.hpp"

namespace fs = std::filesystem;
namespace tg = tapegrad;

namespace {

const char* const kPublished[] = {"gpt2", "llama", "llama tied", "llama with one key head"};

Pretrained weights_of(const fs::path& folder) { return with_weights(read_description(folder), folder); }

Pretrained weights_of(const CheckpointFolder& published) {
  const TemporaryFolder folder;
  published.write(folder / "model");
  return weights_of(folder / "model");
}

tg::IntArray ids_of(const std::string& model) {  // (B, T)
  const auto& rows = gpt2_fixture(model)["ids"];
  tg::IntArray ids(tg::Shape{rows.size(), rows[0].size()});
  for (std::size_t b = 0; b < rows.size(); ++b)
    for (std::size_t t = 0; t < rows[b].size(); ++t) ids(b, t) = rows[b][t];
  return ids;
}

tg::Tensor<float> loss_of_next(const LanguageModel<>& model, const tg::IntArray& ids) {
  const auto [seen, next] = examples::shift(ids);
  return tg::cross_entropy(model(seen), next);
}

/// AdamW step with the fixture's options. Only matrices get weight decay; the caller clips the gradients.
void step_by_adamw(LanguageModel<>& model, const nlohmann::json& options) {
  tg::Parameters<float> matrices, others;
  for (const auto& parameter : tg::parameters(model))
    (parameter->dimension() >= 2 ? matrices : others).push_back(parameter);
  tg::AdamWOptions of_matrices{.lr = options["lr"],
                               .betas = {options["betas"][0], options["betas"][1]},
                               .eps = options.value("eps", 1e-8),
                               .weight_decay = options["weight_decay"]},
      of_others = of_matrices;
  of_others.weight_decay = 0;
  tg::AdamW optimizer(matrices, of_matrices);
  optimizer.add_group(others, of_others);
  optimizer.step();
}

/// The tensors of the model's files if each parameter were replaced by its gradient.
std::map<std::string, tg::StoredArray> stored_gradients(const Pretrained& trained) {
  Pretrained gradients = trained;
  const auto places = tg::named_parameters(gradients.model);
  const auto parameters = tg::named_parameters(trained.model);
  for (std::size_t i = 0; i < places.size(); ++i)
    places[i].second->set_value(tg::Array<float>(parameters[i].second->grad()));
  const TemporaryFolder folder;
  save_weights(gradients.model, gradients.config, folder / "");
  return tg::read_safetensors(folder / "model.safetensors");
}

/// Converts "transformer.h.0.ln_1.weight" to "h.0.ln_1.weight", the name in the fixture and in published GPT-2s.
std::string in_fixture(const std::string& name) {
  const std::string prefix = "transformer.";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

}  // namespace

TEST_CASE("A folder's model gives PyTorch's logits, for any type of weights and any other content") {
  for (const std::string model : kPublished)
    for (const char* dtype : {"F32", "F16", "BF16"})
      for (const bool old : {false, true}) {
        CAPTURE(model);
        CAPTURE(dtype);
        CAPTURE(old);
        CheckpointFolder published(model);
        published.store_as(dtype);
        if (old) {
          published.add_buffers();
          if (published.config.value("tie_word_embeddings", true)) published.add_tied_head();
          if (published.is_gpt2()) published.add_prefix();
        }
        const Pretrained read = weights_of(published);
        check_logits(read.model(ids_of(model)).value(), gpt2_fixture(model)["logits"], 1e-4);
      }
}

TEST_CASE("A loaded model gives the same result id by id as at once") {
  for (const std::string model : kPublished) {
    CAPTURE(model);
    const Pretrained read = weights_of(CheckpointFolder(model));
    const tg::IntArray ids = ids_of(model);  // (B, T)
    const tg::Array<float> all = read.model(ids).value();
    LanguageModel<>::Caches caches;
    for (std::size_t t = 0; t < ids.shape(1); ++t) {
      tg::IntArray column(tg::Shape{ids.shape(0), 1});
      for (std::size_t b = 0; b < ids.shape(0); ++b) column(b, 0) = ids(b, t);
      const tg::Array<float> row = read.model(column, caches).value();
      for (std::size_t b = 0; b < ids.shape(0); ++b)
        for (std::size_t v = 0; v < all.shape()[2]; ++v) REQUIRE(std::abs(row(b, 0, v) - all(b, t, v)) < 1e-5);
    }
  }
}

TEST_CASE("A step of fine-tuning matches PyTorch's loss, gradients and next loss") {
  for (const std::string model : kPublished)
    for (const bool adamw : {true, false}) {
      CAPTURE(model);
      CAPTURE(adamw);
      const auto& expected = gpt2_fixture(model);
      const auto& options = expected[adamw ? "adamw" : "sgd"];
      Pretrained trained = weights_of(CheckpointFolder(model));
      const tg::IntArray ids = ids_of(model);
      {
        const tg::Tape tape;
        const auto loss = loss_of_next(trained.model, ids);
        CHECK(loss.item() == doctest::Approx(double(expected["loss"])).epsilon(1e-6));
        loss.backward();
      }
      const auto gradients = stored_gradients(trained);
      for (const auto& tensor : expected["tensors"]) {
        CAPTURE(tensor["name"]);
        bool found = false;
        for (const auto& entry : gradients) {
          if (in_fixture(entry.first) != tensor["name"]) continue;
          check_summary(entry.second.as<float>(), tensor["gradient"], 1e-5);
          found = true;
        }
        CHECK(found);
      }
      const double norm = tg::clip_grad_norm(tg::parameters(trained.model), double(expected["clip"]));
      CHECK(norm == doctest::Approx(double(expected["gradient_norm"])).epsilon(1e-5));
      if (adamw)
        step_by_adamw(trained.model, options);
      else
        tg::SGD(tg::parameters(trained.model), {.lr = options["lr"]}).step();
      CHECK(loss_of_next(trained.model, ids).item() == doctest::Approx(double(options["loss_after"])).epsilon(1e-5));
    }
}

TEST_CASE("A written folder has the same numbers, names and files as the one that was read") {
  for (const std::string model : kPublished) {
    CAPTURE(model);
    const TemporaryFolder folder;
    CheckpointFolder published(model);
    if (published.is_gpt2()) published.add_prefix();  // the saved format
    published.config["of_a_later_version"] = {1, 2};
    published.write(folder / "read");
    folder.write("read/tokenizer_config.json", "{\"any\": 1}");
    const Pretrained read = weights_of(folder / "read");
    fs::create_directories(folder / "new" / "written");
    folder.write("new/written/config.json.tmp", "the user's");
    save_pretrained(read, folder / "new" / "written");

    CHECK(folder.read("new/written/config.json.tmp") == "the user's");

    CHECK(nlohmann::json::parse(folder.read("new/written/config.json")) == published.config);
    for (const std::string name : {"vocab.json", "merges.txt", "tokenizer_config.json"})
      CHECK(folder.read("new/written/" + name) == folder.read("read/" + name));
    const auto before = tg::read_safetensors(folder / "read" / "model.safetensors"),
               after = tg::read_safetensors(folder / "new" / "written" / "model.safetensors");
    CHECK(after.size() == before.size());
    for (const auto& entry : before) {
      CAPTURE(entry.first);
      REQUIRE(after.contains(entry.first));
      CHECK(after.at(entry.first).dtype() == "float32");
      CHECK(after.at(entry.first).as<float>() == entry.second.as<float>());
    }
    CHECK(tg::load_metadata(folder / "new" / "written" / "model.safetensors") == tg::Metadata{{"format", "pt"}});
    const tg::IntArray ids = ids_of(model);
    CHECK(weights_of(folder / "new" / "written").model(ids).value() == read.model(ids).value());
  }
}

TEST_CASE("All other files of a folder are read before its weights, and an unreadable one is refused") {
  const TemporaryFolder folder;
  CheckpointFolder("gpt2").write(folder / "model");
  fs::create_directory(folder / "model" / "chat_template.jinja");
  CHECK_THROWS_WITH_AS(read_description(folder / "model"),
                       (folder.path("model/chat_template.jinja") + ": expected a file, got something else").c_str(),
                       std::runtime_error);
}
