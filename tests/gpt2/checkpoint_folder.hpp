/// Folders like Hugging Face's of GPT-2 and Llama, with the small models of fixtures/gpt2.json.
///
///     CheckpointFolder published("gpt2");
///     published.store_as("BF16");
///     published.config["n_head"] = 5;               // change or break it before writing
///     published.tensors.erase("h.0.ln_1.weight");
///     published.write(folder.path("gpt2"));
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <nlohmann/json.hpp>
#include <paths.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../support/checkpoint_bytes.hpp"

/// PyTorch's results for a model of fixtures/gpt2.json, written and described by gpt2/make_fixtures.py: "gpt2",
/// "llama", "llama tied", "llama with one key head", "llama with wide heads".
inline const nlohmann::json& gpt2_fixture(const std::string& model) {
  static const nlohmann::json all = nlohmann::json::parse(std::ifstream(TAPEGRAD_SOURCES "/tests/fixtures/gpt2.json"));
  return all.at(model);
}

/// A tensor of a checkpoint: its numbers, and their type in the file.
struct FileTensor {
  tapegrad::Array<float> numbers;
  std::string dtype = "F32";  // or F16, BF16, U8, BOOL

  /// The bytes in the file. Throws std::invalid_argument if the type cannot represent a number.
  std::string bytes() const {
    std::string out;
    for (const float x : numbers) {
      const auto bits = std::bit_cast<std::uint32_t>(x);
      float held = x;  // read back
      if (dtype == "F32") {
        out += raw({x});
      } else if (dtype == "BF16") {  // the upper half
        out += raw({static_cast<std::uint16_t>(bits >> 16)});
        held = std::bit_cast<float>(bits >> 16 << 16);
      } else if (dtype == "F16") {  // 5 bits of exponent, 10 of fraction; none that are subnormal or infinite
        const std::uint32_t exponent = x == 0 ? 0 : (bits >> 23 & 0xff) - (127 - 15);
        out += raw({static_cast<std::uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff))});
        held = exponent < 31 && (exponent > 0 || x == 0) ? std::bit_cast<float>(bits >> 13 << 13) : NAN;
      } else if (dtype == "U8" || dtype == "BOOL") {
        out += raw({static_cast<std::uint8_t>(x)});
        held = static_cast<float>(static_cast<std::uint8_t>(x));
      } else {
        throw std::invalid_argument("no type " + dtype);
      }
      if (held != x) throw std::invalid_argument(dtype + " does not hold " + std::to_string(x));
    }
    return out;
  }
};

/// A parameter with the numbers of the fixture's script: multiples of 1/128 from [low, high).
inline tapegrad::Array<float> drawn(const nlohmann::json& tensor) {
  const std::vector<std::size_t> extents = tensor["shape"];
  const double low = tensor["low"], high = tensor["high"];
  tapegrad::Array<float> out(tapegrad::Shape(extents.begin(), extents.end()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double x = low + (high - low) * tapegrad::random_uniform(tensor["key"], i);
    out.data()[i] = static_cast<float>(std::floor(128 * x) / 128);
  }
  return out;
}

/// The content of a folder. It starts with the fixture's config and parameters, in F32, under their names in Hugging
/// Face's state_dict. GPT-2's have no `transformer.` prefix, as in the published file.
struct CheckpointFolder {
  nlohmann::json config;                      ///< config.json, with all of Hugging Face's keys
  std::map<std::string, FileTensor> tensors;  ///< model.safetensors

  explicit CheckpointFolder(const std::string& model) : config(gpt2_fixture(model)["config"]) {
    for (const auto& tensor : gpt2_fixture(model)["tensors"]) tensors[tensor["name"]] = {drawn(tensor)};
  }

  bool is_gpt2() const { return config["model_type"] == "gpt2"; }

  /// Stores the present tensors as F32, F16 or BF16; each represents the fixture's numbers exactly. Add buffers later:
  /// BF16 does not represent theirs.
  void store_as(const std::string& dtype) {
    for (auto& [name, tensor] : tensors) tensor.dtype = dtype;
    config["torch_dtype"] = dtype == "F32" ? "float32" : dtype == "F16" ? "float16" : "bfloat16";
  }

  /// Adds the buffers of older files: GPT-2's causal masks, as U8, BOOL or F32, and its replacement for -inf; Llama's
  /// frequencies of the rotary positions.
  void add_buffers(const std::string& mask_dtype = "U8") {
    const std::size_t layers = config[is_gpt2() ? "n_layer" : "num_hidden_layers"];
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const std::string i = std::to_string(layer);
      if (is_gpt2()) {
        tensors["h." + i + ".attn.bias"] = {lower_triangle(config["n_positions"]), mask_dtype};
        tensors["h." + i + ".attn.masked_bias"] = {tapegrad::Array<float>(tapegrad::Shape{}, -1e4f)};
      } else {
        tensors["model.layers." + i + ".self_attn.rotary_emb.inv_freq"] = {inv_freq()};
      }
    }
  }

  /// Adds the tied head, as in files not written by save_pretrained.
  void add_tied_head() {
    tensors["lm_head.weight"] = tensors.at(is_gpt2() ? "wte.weight" : "model.embed_tokens.weight");
  }

  /// Adds the prefix `transformer.` of fine-tuned GPT-2s to all names but the head's.
  void add_prefix() {
    std::map<std::string, FileTensor> named;
    for (auto& [name, tensor] : tensors)
      named[name == "lm_head.weight" ? name : "transformer." + name] = std::move(tensor);
    tensors = std::move(named);
  }

  /// Replaces an existing tensor by zeros of another shape.
  void reshape(const std::string& name, const tapegrad::Shape& shape) {
    tensors.at(name).numbers = tapegrad::Array<float>(shape, 0.0f);
  }

  /// Writes config.json, model.safetensors, vocab.json and merges.txt into a folder, created if needed.
  void write(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    write_bytes(folder / "config.json", config.dump(2) + '\n');
    write_bytes(folder / "model.safetensors", safetensors());
    const std::filesystem::path vocabulary = TAPEGRAD_SOURCES "/tests/gpt2/vocabulary";
    for (const char* name : {"vocab.json", "merges.txt"})
      std::filesystem::copy_file(vocabulary / name, folder / name, std::filesystem::copy_options::overwrite_existing);
  }

 private:
  static tapegrad::Array<float> lower_triangle(std::size_t positions) {  // (1, 1, T, T)
    tapegrad::Array<float> mask(tapegrad::Shape{1, 1, positions, positions});
    for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = i % positions <= i / positions ? 1.0f : 0.0f;
    return mask;
  }

  tapegrad::Array<float> inv_freq() const {  // (D / 2)
    const std::size_t heads = config["num_attention_heads"], width = config["hidden_size"],
                      size = config.value("head_dim", width / heads);
    const double theta = config["rope_theta"];
    tapegrad::Array<float> out(tapegrad::Shape{size / 2});
    for (std::size_t j = 0; j < out.size(); ++j)
      out(j) = static_cast<float>(std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(size)));
    return out;
  }

  std::string safetensors() const {
    nlohmann::json header{{"__metadata__", {{"format", "pt"}}}};
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      const std::size_t begin = data.size();
      data += tensor.bytes();
      header[name] = {{"dtype", tensor.dtype},
                      {"shape", std::vector(tensor.numbers.shape().begin(), tensor.numbers.shape().end())},
                      {"data_offsets", {begin, data.size()}}};
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return checkpoint(text, data);
  }
};
