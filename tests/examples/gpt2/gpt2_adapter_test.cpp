// Low-rank updates of a loaded model, in folders of Hugging Face's PEFT format.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../../examples/gpt2/adapter.hpp"
#include "../../gpt2/checkpoint_folder.hpp"
#include "temporary_folder.hpp"

namespace fs = std::filesystem;
namespace tg = tapegrad;

namespace {

const tg::IntArray kIds{{5, 300, 12, 7, 99, 1}};  // (1, T)

Pretrained published(const std::string& model) {
  const TemporaryFolder folder;
  CheckpointFolder(model).write(folder / "model");
  return with_weights(read_description(folder / "model"), folder / "model");
}

/// The model with nonzero updates of rank 2.
Pretrained updated(const std::string& model) {
  Pretrained changed = published(model);
  tg::Generator generator(3);
  add_updates(changed.model, 2, 6);
  for (const auto& parameter : trained_parameters(changed.model))
    parameter->set_value(tg::uniform<float>(parameter->shape(), -0.5, 0.5, generator));
  return changed;
}

double largest_difference(const tg::Array<float>& a, const tg::Array<float>& b) {
  REQUIRE(a.shape() == b.shape());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a.data()[i]) - double(b.data()[i])));
  return most;
}

std::string refusal(Pretrained& pretrained, const fs::path& folder) {
  try {
    load_adapter(pretrained, folder);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("Only updates are trained, and initially they change nothing") {
  for (const std::string model : {"gpt2", "llama"}) {
    const Pretrained before = published(model);
    Pretrained after = before;
    add_updates(after.model, 3, 0);
    CHECK(after.model(kIds).value() == before.model(kIds).value());
    const std::size_t layers = after.model.blocks.size();
    CHECK(trained_parameters(after.model).size() == layers * 4 * 2);
    const tg::Tape tape;
    tg::sum(after.model(kIds)).backward();
    for (const auto& entry : tg::named_parameters(after.model)) {
      CAPTURE(entry.first);
      CHECK(entry.second->has_grad() == (entry.first.find("lora_") != std::string::npos));
    }
    CHECK(after.model.blocks[0].attention.q_proj.low_rank->alpha == 6);  // twice the rank
  }
}

TEST_CASE("A saved and loaded adapter gives the same logits, and so do the merged weights") {
  for (const std::string model : {"gpt2", "llama", "llama with one key head"}) {
    CAPTURE(model);
    const TemporaryFolder folder;
    const Pretrained changed = updated(model);
    const tg::Array<float> logits = changed.model(kIds).value();
    CHECK(largest_difference(published(model).model(kIds).value(), logits) > 0.1);

    save_adapter(changed, folder / "adapter");
    Pretrained read = published(model);
    load_adapter(read, folder / "adapter");
    CHECK(largest_difference(read.model(kIds).value(), logits) < 1e-4);
    const Pretrained whole = merged(changed);
    CHECK(largest_difference(whole.model(kIds).value(), logits) < 1e-4);
    CHECK(tg::named_parameters(whole.model).size() == tg::named_parameters(published(model).model).size());

    const auto config = nlohmann::json::parse(folder.read("adapter/adapter_config.json"));
    CHECK(config["peft_type"] == "LORA");
    CHECK(config["r"] == 2);
    CHECK(config["lora_alpha"] == 6.0);
    const auto tensors = tg::read_safetensors(folder / "adapter" / "adapter_model.safetensors");
    CHECK(tensors.size() == read.model.blocks.size() * (model == "gpt2" ? 2 : 4) * 2);
    const std::string layer = model == "gpt2" ? "transformer.h.0.attn.c_attn" : "model.layers.0.self_attn.v_proj";
    CHECK(tensors.at("base_model.model." + layer + ".lora_A.weight").shape()[0] == (model == "gpt2" ? 6 : 2));
  }
}

TEST_CASE("An adapter whose saving was interrupted is refused") {
  const TemporaryFolder folder;
  save_adapter(updated("gpt2"), folder / "adapter");
  fs::rename(folder / "adapter" / "adapter_config.json", folder / "adapter" / "adapter_config.json.replaced");
  Pretrained read = published("gpt2");
  CHECK(refusal(read, folder / "adapter").ends_with("(adapter_config.json.replaced holds the earlier settings)"));
}

TEST_CASE("Updates with use_rslora are divided by the square root of the rank") {
  const TemporaryFolder folder;
  const Pretrained changed = updated("gpt2");
  save_adapter(changed, folder / "adapter");
  auto config = nlohmann::json::parse(folder.read("adapter/adapter_config.json"));
  const double rank = config["rank_pattern"]["attn.c_attn"];
  config["use_rslora"] = true;
  for (auto& alpha : config["alpha_pattern"]) alpha = alpha.get<double>() / std::sqrt(rank);
  config["alpha_pattern"]["attn.c_proj"] = 6 / std::sqrt(2.0);
  folder.write("adapter/adapter_config.json", config.dump());
  Pretrained read = published("gpt2");
  load_adapter(read, folder / "adapter");
  CHECK(largest_difference(read.model(kIds).value(), changed.model(kIds).value()) < 1e-4);
}

TEST_CASE("A pattern matches layer names or their ends") {
  const TemporaryFolder folder;
  const Pretrained changed = updated("gpt2");
  save_adapter(changed, folder / "adapter");
  const auto settings = nlohmann::json::parse(folder.read("adapter/adapter_config.json"));
  const double own = settings["alpha_pattern"]["attn.c_attn"];
  const auto with_pattern = [&](nlohmann::json pattern) {
    auto config = settings;
    pattern["attn.c_proj"] = settings["alpha_pattern"]["attn.c_proj"];
    config["alpha_pattern"] = pattern;
    folder.write("adapter/adapter_config.json", config.dump());
    Pretrained read = published("gpt2");
    const std::string message = refusal(read, folder / "adapter");
    if (message != "none") return message;
    return std::string(largest_difference(read.model(kIds).value(), changed.model(kIds).value()) < 1e-4 ? "the same"
                                                                                                        : "another");
  };
  CHECK(with_pattern({{"c_attn", own}}) == "the same");
  CHECK(with_pattern({{"transformer.h.0.attn.c_attn", own}, {"h.1.attn.c_attn", own}}) == "the same");
  CHECK(with_pattern({{"h.0.attn.c_attn", own}}) == "another");
  CHECK(with_pattern({{"n.c_attn", own}}) == "another");  // not the name of a module
  CHECK(with_pattern({{"c_attn", own}, {"attn.c_attn", own}}) == "the same");
  CHECK(with_pattern({{"c_attn", own}, {"attn.c_attn", own + 1}}).find("alpha_pattern: expected one number") !=
        std::string::npos);
  CHECK(with_pattern({{R"(h\.\d+\.attn\.c_attn)", own}}).find("alpha_pattern: expected module names") !=
        std::string::npos);
  CHECK(with_pattern({{"c_attn", "x"}}).find("alpha_pattern: c_attn: expected a positive number") != std::string::npos);
}

TEST_CASE("Non-finite updates are refused by name") {
  const TemporaryFolder folder;
  Pretrained changed = updated("gpt2"), read = published("gpt2");
  auto& lora_b = changed.model.blocks[1].attention.out_proj.low_rank->B;
  lora_b.set_value(tg::Array<float>(lora_b.shape(), std::numeric_limits<float>::infinity()));
  save_adapter(changed, folder / "adapter");
  CHECK(refusal(read, folder / "adapter") ==
        (folder / "adapter" / "adapter_model.safetensors").string() +
            ": expected only finite numbers in base_model.model.transformer.h.1.attn.c_proj.lora_B.weight");
}

TEST_CASE("An error for an incompatible adapter names the file") {
  const TemporaryFolder folder;
  save_adapter(updated("gpt2"), folder / "adapter");
  const std::string config = "adapter_config.json", weights = "adapter_model.safetensors";
  const auto settings = nlohmann::json::parse(folder.read("adapter/" + config));
  Pretrained llama = published("llama"), gpt2 = published("gpt2");
  const auto refuses = [&](Pretrained& pretrained, const std::string& file, const std::string& words) {
    const std::string message = refusal(pretrained, folder / "adapter");
    CAPTURE(message);
    CHECK(message.find((folder / "adapter" / file).string() + ": ") != message.npos);
    CHECK(message.find(words) != message.npos);
    CHECK(message.find('\n') == message.npos);
  };
  refuses(llama, weights, "");
  struct Change {
    nlohmann::json patch;
    std::string file, words;
  };
  const std::vector<Change> changes{
      {{{"peft_type", "IA3"}}, config, ""},
      {{{"peft_type", nullptr}}, config, ""},
      {{{"r", "x"}, {"rank_pattern", nullptr}}, config, ""},
      {{{"bias", "all"}}, config, "bias: expected"},
      {{{"use_dora", true}}, config, "use_dora: expected"},
      {{{"lora_bias", true}}, config, "lora_bias: expected"},
      {{{"use_rslora", 1}}, config, "use_rslora: expected"},
      {{{"modules_to_save", {"wte"}}}, config, "modules_to_save: expected"},
      {{{"init_lora_weights", "pissa"}}, config, "init_lora_weights: expected"},
      {{{"layer_replication", {{0, 1}, {0, 1}}}}, config, "layer_replication: expected"},
      {{{"alora_invocation_tokens", {1, 2}}}, config, "alora_invocation_tokens: expected"},
      {{{"rank_pattern", {{"attn.c_attn", 0.0}}}}, config, ""},
      {{{"rank_pattern", {{"attn.c_attn", 0.5}}}}, config, ""},
      {{{"rank_pattern", {{"attn.c_attn", -2.0}}}}, config, ""},
      {{{"rank_pattern", {{"attn.c_attn", 1e300}}}}, config, "rank_pattern: expected a whole number as rank"},
      {{{"rank_pattern", {{"attn.c_attn", 4.0}}}}, weights, ""},  // differs from the rank of the weights
      {{{"alpha_pattern", {{"attn.c_attn", 1e300}}}}, config, "alpha_pattern: expected a scale in float's range"}};
  for (const Change& change : changes) {
    CAPTURE(change.patch.dump());
    auto other = settings;
    other.merge_patch(change.patch);  // null removes a setting
    folder.write("adapter/" + config, other.dump());
    refuses(gpt2, change.file, change.words);
  }
  auto other = settings;
  for (const char* unset : {"use_dora", "use_rslora", "layer_replication", "modules_to_save"}) other[unset] = nullptr;
  other["init_lora_weights"] = false;
  folder.write("adapter/" + config, other.dump());
  Pretrained again = published("gpt2");
  CHECK(refusal(again, folder / "adapter") == "none");

  folder.write("adapter/" + config, "{");
  refuses(gpt2, config, "");
  folder.write("adapter/" + config, settings.dump());
  folder.write("adapter/" + weights, std::string("\2\0\0\0\0\0\0\0{}", 10));
  refuses(gpt2, weights, "");
  for (const std::string& file : {weights, config}) {
    fs::remove(folder / "adapter" / file);
    refuses(gpt2, file, "");
  }
  CHECK(gpt2.model(kIds).value() == published("gpt2").model(kIds).value());  // nothing has changed
}
