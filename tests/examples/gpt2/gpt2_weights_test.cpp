// GPT-2's and Llama's weights from folders in Hugging Face's format, compared with PyTorch's results in
// fixtures/gpt2.json; and folders saved by the program.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../../../examples/common/shift.hpp"
#include "../../../examples/gpt2/pretrained.hpp"
#include "../../../examples/gpt2/score.hpp"
#include "../../../examples/gpt2/weights.hpp"
#include "../../gpt2/checkpoint_folder.hpp"
#include "../../gpt2/close_to_fixture.hpp"
#include "sanitized.hpp"
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
        INFO("model = ", model, ", dtype = ", dtype, ", old = ", old);
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
  CHECK_THROWS_WITH_AS(
      read_description(folder / "model"),
      (folder.path("model/chat_template.jinja") + ": expected a regular file, got a folder, pipe or device").c_str(),
      std::runtime_error);
}

// ---- the perplexity of a text longer than the context ---------------------------------------------------------------

TEST_CASE("Windows score each id except the first once, after at least half a context") {
  for (const std::size_t context : {1, 2, 3, 8, 9})
    for (std::size_t size = 2; size < 60; ++size) {
      CAPTURE(context);
      CAPTURE(size);
      std::vector<int> scored(size, 0);
      const std::vector<Window> windows = windows_of(size, context);
      for (const Window& window : windows) {
        REQUIRE(window.begin < window.end);
        REQUIRE(window.end < size);
        CHECK(window.end - window.begin <= context);
        REQUIRE(window.scored >= 1);
        for (std::size_t i = window.end + 1 - window.scored; i <= window.end; ++i) {
          ++scored[i];
          const std::size_t before = i - window.begin;  // number of ids the model sees before this one
          CHECK(before >= std::min(i, std::max<std::size_t>(1, (context + 1) / 2)));
        }
      }
      CHECK(scored.front() == 0);
      CHECK(std::all_of(scored.begin() + 1, scored.end(), [](int times) { return times == 1; }));
      if (size <= context + 1) CHECK(windows.size() == 1);
    }
}

TEST_CASE("A score is the sum of each id's loss given the earlier ids in its window") {
  const TemporaryFolder folder;
  CheckpointFolder("gpt2").write(folder / "model");
  const Pretrained read = with_weights(read_description(folder / "model"), folder / "model");
  for (const std::size_t size : {2, 9, 25, 26, 100}) {
    CAPTURE(size);
    std::vector<std::int64_t> ids(size);
    for (std::size_t i = 0; i < size; ++i) ids[i] = static_cast<std::int64_t>(384 * tg::random_uniform(3, i));
    constexpr std::size_t context = 24;
    double expected = 0;  // the simplest way: each id separately, its whole context recomputed
    for (std::size_t i = 1; i < size; ++i) {
      // The first window ends at 24; each later one ends 12 further and begins 24 before its end.
      const std::size_t steps = i <= context ? 0 : (i - context + 11) / 12;
      const std::size_t end = std::min(size - 1, context + 12 * steps), begin = end < context ? 0 : end - context;
      tg::IntArray seen(tg::Shape{1, i - begin});
      std::copy(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(i),
                seen.begin());
      const tg::Array<float> logits = read.model(seen).value();
      double sum = 0;
      const std::size_t last = i - begin - 1;
      for (std::size_t v = 0; v < 384; ++v) sum += std::exp(double(logits(0, last, v)));
      expected += std::log(sum) - double(logits(0, last, static_cast<std::size_t>(ids[i])));
    }
    std::size_t reported = 0;
    const Score all = score(read.model, context, ids, [&](std::size_t, const Score& of) { reported += of.tokens; });
    CHECK(all.loss == doctest::Approx(expected).epsilon(1e-5));
    CHECK(all.tokens == size - 1);
    CHECK(reported == size - 1);
  }
}

// ---- saving over another model: readers never see a mixture ---------------------------------------------------------

namespace {

Pretrained pretrained(const fs::path& folder) { return with_weights(read_description(folder), folder); }

// The fixture's model with all parameters equal to this number, under this name in config.json.
Pretrained model_of(float number) {
  const TemporaryFolder folder;
  CheckpointFolder published("gpt2");
  published.write(folder / "model");
  Pretrained model = pretrained(folder / "model");
  for (const auto& parameter : tg::parameters(model.model))
    parameter->set_value(tg::Array<float>(parameter->shape(), number));
  model.config.json["name"] = number;
  return model;
}

// The number of all parameters that gradients reach; 0 for a mixture.
float number_in(const LanguageModel<>& model) {
  float number = 0;
  for (const auto& [name, parameter] : tg::named_parameters(model))
    for (const float x : parameter->value()) {
      if (number == 0) number = x;
      if (x != number) return 0;
    }
  return number;
}

}  // namespace

TEST_CASE("a process killed while it saves leaves the old model, the new one, or a folder that is refused") {
  const TemporaryFolder folder;
  const fs::path place = folder / "saved";
  const Pretrained one = model_of(1), two = model_of(2);
  const auto number = [&] {
    const Pretrained read = pretrained(place);
    return read.config.json["name"] == number_in(read.model) ? number_in(read.model) : 0;
  };
  save_pretrained(one, place);
  for (int i = 0; i < (kSanitized ? 20 : 200); ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0)
      for (bool first = false;; first = !first) save_pretrained(first ? one : two, place);
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + 137 * i % 7000));  // a random time
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    try {
      const float found = number();
      REQUIRE((found == 1 || found == 2));
    } catch (const std::runtime_error& refusal) {
      REQUIRE(std::string(refusal.what())
                  .find("saved: expected a complete model, got one whose saving was interrupted; save it again") !=
              std::string::npos);
    }
  }
  save_pretrained(one, place);
  CHECK(number() == 1);
}

TEST_CASE("a model that cannot be written leaves the old one in its folder") {
  const TemporaryFolder folder;
  const fs::path place = folder / "saved";
  save_pretrained(model_of(1), place);
  fs::remove(place / "model.safetensors");
  fs::create_directory(place / "model.safetensors");  // cannot be replaced by a file
  CHECK_THROWS_AS(save_pretrained(model_of(2), place), std::runtime_error);
  CHECK(nlohmann::json::parse(folder.read("saved/config.json"))["name"] == 1);
  CHECK_FALSE(fs::exists(place / "config.json.replaced"));
}
