// Folders that differ from Hugging Face's format: each is refused in one line with the file's name.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../../examples/gpt2/pretrained.hpp"
#include "../../gpt2/checkpoint_folder.hpp"
#include "temporary_folder.hpp"

namespace fs = std::filesystem;
namespace tg = tapegrad;

namespace {

const char* const config = "config.json";

std::string refusal(const fs::path& folder) {
  try {
    with_weights(read_description(folder), folder);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

/// Expects one line with the file's name and the words.
void check_refusal(const std::string& message, const fs::path& file, const std::string& words) {
  CAPTURE(message);
  CAPTURE(words);
  CHECK(message.find(file.string() + ": ") != message.npos);
  CHECK(message.find(words) != message.npos);
  CHECK(message.find('\n') == message.npos);
  CHECK(message.size() < 500);
}

struct Broken {
  std::string model;
  std::function<void(CheckpointFolder&)> change;
  std::string file, words;
};

std::function<void(CheckpointFolder&)> setting(const std::string& name, const nlohmann::json& value) {
  return [=](CheckpointFolder& folder) { folder.config[name] = value; };
}

std::function<void(CheckpointFolder&)> without(const std::string& name) {
  return [=](CheckpointFolder& folder) { folder.config.erase(name); };
}

std::function<void(CheckpointFolder&)> lacking(const std::string& tensor) {
  return [=](CheckpointFolder& folder) { folder.tensors.erase(tensor); };
}

std::function<void(CheckpointFolder&)> reshaped(const std::string& tensor, const tg::Shape& shape) {
  return [=](CheckpointFolder& folder) { folder.reshape(tensor, shape); };
}

void check(const Broken& broken) {
  CAPTURE(broken.words);
  const TemporaryFolder folder;
  CheckpointFolder published(broken.model);
  broken.change(published);
  published.write(folder / "model");
  check_refusal(refusal(folder / "model"), folder / "model" / broken.file, broken.words);
}

}  // namespace

TEST_CASE("An invalid or unsupported configuration is refused with the name of the setting") {
  const std::vector<Broken> all{
      {"gpt2", without("model_type"), config, "expected the setting model_type, got none"},
      {"gpt2", setting("eos_token_id", "<|endoftext|>"), config, "eos_token_id: expected an id or a list of ids"},
      {"gpt2", setting("model_type", "bert"), config, R"(model_type: expected one of gpt2, llama, got "bert")"},
      {"gpt2", setting("n_head", 5), config, "n_head: expected a divisor of 32, got 5"},
      {"gpt2", setting("n_layer", 0), config, "n_layer: expected a whole number from 1 to"},
      {"gpt2", setting("n_embd", -1), config, "n_embd: expected a whole number from 1 to"},
      {"gpt2", setting("n_embd", 32.5), config, "n_embd: expected a whole number from 1 to"},
      {"gpt2", setting("n_embd", "32"), config, "n_embd: expected a whole number from 1 to"},
      {"gpt2", setting("n_positions", 1e30), config, "n_positions: expected a whole number from 1 to"},
      {"gpt2", setting("layer_norm_epsilon", 0), config, "layer_norm_epsilon: expected a positive number"},
      {"gpt2", setting("activation_function", "gelu_old"), config, "activation_function: expected one of"},
      {"gpt2", setting("vocab_size", 385), "vocab.json", "expected 385 tokens"},
      {"gpt2", setting("scale_attn_by_inverse_layer_idx", true), config, "scale_attn_by_inverse_layer_idx"},
      {"llama", without("intermediate_size"), config, "expected the setting intermediate_size, got none"},
      {"llama", setting("num_key_value_heads", 3), config, "num_key_value_heads: expected a divisor of"},
      {"llama", setting("attention_bias", true), config, "attention_bias: expected false, got true"},
      {"llama", setting("hidden_act", "relu"), config, "hidden_act: expected one of silu"},
      {"llama", setting("rope_theta", "x"), config, "rope_theta: expected a positive number"},
      {"llama", setting("rope_scaling", {{"type", "linear"}, {"factor", 2}}), config,
       R"(rope_scaling: type: expected "default", got "linear")"},
      {"llama", setting("rope_parameters", {{"type", "linear"}, {"rope_theta", 5e5}}), config,
       R"(rope_parameters: type: expected "default")"},
      {"llama", setting("rope_parameters", {{"rope_theta", 5e5}, {"factor", 4}}), config,
       "rope_parameters: factor: expected none, got 4"},
      {"gpt2", setting("quantization_config", {{"quant_method", "x"}}), config, "quantization_config: expected none"},
      {"gpt2", [](CheckpointFolder& folder) { folder.config = nlohmann::json::array(); }, config,
       "expected an object of settings, got []"},
      {"llama with wide heads", [](CheckpointFolder&) {}, config, "head_dim"},
  };
  for (const Broken& broken : all) check(broken);
}

TEST_CASE("Settings are read from their old and new places, and may be empty") {
  const auto base_of = [](const nlohmann::json& changes) {
    CheckpointFolder published("llama");
    published.config["rope_theta"] = 5e5;
    published.config.update(changes);
    const TemporaryFolder folder;
    published.write(folder / "model");
    return read_config(folder / "model").model.rotary_base;
  };
  CHECK(base_of(nlohmann::json::object()) == 5e5);
  CHECK(base_of({{"rope_parameters", {{"rope_type", "default"}}}}) == 5e5);
  CHECK(base_of({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 2e5}}}}) == 2e5);
  CHECK(base_of({{"rope_scaling", {{"type", "default"}}}, {"use_cache", false}, {"quantization_config", nullptr}}) ==
        5e5);
  CheckpointFolder gpt2("gpt2");
  gpt2.config["use_cache"] = false;
  const TemporaryFolder folder;
  gpt2.write(folder / "model");
  CHECK_NOTHROW(read_config(folder / "model"));
}

TEST_CASE("Weights that do not match the configuration are refused with the tensor's name in the file") {
  const std::string weights = "model.safetensors";
  const std::vector<Broken> all{
      {"gpt2", lacking("h.1.ln_2.bias"), weights, "h.1.ln_2.bias"},
      {"gpt2", reshaped("h.0.attn.c_attn.weight", {96, 32}), weights, "h.0.attn.c_attn.weight"},
      {"gpt2", reshaped("wpe.weight", {23, 32}), weights, "wpe.weight"},
      {"gpt2", [](CheckpointFolder& f) { f.tensors["h.0.attn.c_attn.extra"] = f.tensors["h.0.ln_1.bias"]; }, weights,
       "h.0.attn.c_attn.extra"},
      {"gpt2", setting("n_layer", 3), weights, "h.2."},
      {"gpt2", setting("n_layer", 1), weights, "h.1."},
      {"gpt2", setting("n_layer", 2000000000), config, "expected sizes of a model that fits in model.safetensors"},
      {"gpt2", setting("n_embd", 2000000000), config, "expected sizes of a model that fits in model.safetensors"},
      {"llama", lacking("lm_head.weight"), weights, "lm_head.weight"},
      {"llama", reshaped("model.layers.0.self_attn.k_proj.weight", {32, 32}), weights,
       "model.layers.0.self_attn.k_proj.weight"},
      {"llama", setting("intermediate_size", 81), weights, "model.layers.0.mlp"},
  };
  for (const Broken& broken : all) check(broken);
}

TEST_CASE("Layers with more tensors than a header can hold are refused before any is allocated") {
  CheckpointFolder published("gpt2");
  for (const char* name : {"n_embd", "n_head", "n_inner", "n_positions"}) published.config[name] = 1;
  published.config["n_layer"] = 1000000;
  const TemporaryFolder folder;
  published.write(folder / "model");
  fs::resize_file(folder / "model" / "model.safetensors", 20000000);  // more than 2 bytes for each number
  check_refusal(refusal(folder / "model"), folder / "model" / config,
                "expected sizes of a model that fits in model.safetensors (20,000,000 bytes), got a larger one");
}

TEST_CASE("A folder with a missing or corrupt file is refused with the file's name") {
  for (const std::string name : {config, "model.safetensors", "vocab.json", "merges.txt"}) {
    const TemporaryFolder folder;
    CheckpointFolder("gpt2").write(folder / "model");
    const std::string bytes = folder.read("model/" + name);
    fs::remove(folder / "model" / name);
    check_refusal(refusal(folder / "model"), folder / "model" / name, "");
    fs::create_directory(folder / "model" / name);
    check_refusal(refusal(folder / "model"), folder / "model" / name, "");
    fs::remove(folder / "model" / name);
    for (const std::string& content : {std::string(), std::string("{"), std::string("[]"),
                                       bytes.substr(0, bytes.size() / 2), std::string(100, '\0')}) {
      folder.write("model/" + name, content);
      const std::string message = refusal(folder / "model");
      CAPTURE(message);
      CHECK(message.find((folder / "model").string() + "/") != message.npos);
      CHECK(message.find(name) != message.npos);
      CHECK(message.find('\n') == message.npos);
    }
  }
  const TemporaryFolder folder;
  CheckpointFolder("llama").write(folder / "parts");
  fs::rename(folder / "parts" / "model.safetensors", folder / "parts" / "model.safetensors.index.json");
  check_refusal(refusal(folder / "parts"), folder / "parts" / "model.safetensors.index.json",
                "expected all weights in one model.safetensors, got a checkpoint in several files");
  check_refusal(refusal(folder / "none"), folder / "none", "expected a folder with config.json");
}
