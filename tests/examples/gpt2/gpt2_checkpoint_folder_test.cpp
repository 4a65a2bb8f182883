// Checks that folders from gpt2/checkpoint_folder.hpp hold the inputs of PyTorch's results in fixtures/gpt2.json.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <paths.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../gpt2/checkpoint_folder.hpp"
#include "../../gpt2/close_to_fixture.hpp"
#include "temporary_folder.hpp"

namespace tg = tapegrad;

namespace {

const char* const kModels[] = {"gpt2", "llama", "llama tied", "llama with one key head", "llama with wide heads"};

using Tensors = std::map<std::string, tg::StoredArray>;

Tensors tensors_of(const CheckpointFolder& published, const TemporaryFolder& folder) {
  published.write(folder / "model");
  return tg::read_safetensors(folder / "model" / "model.safetensors");
}

void check_parameters(const Tensors& tensors, const std::string& model, const char* torch_dtype, const char* prefix) {
  for (const auto& expected : gpt2_fixture(model)["tensors"]) {
    const std::string name = prefix + std::string(expected["name"]);
    CAPTURE(name);
    REQUIRE(tensors.contains(name));
    const tg::StoredArray& tensor = tensors.at(name);
    CHECK(tensor.dtype() == torch_dtype);
    const std::vector<std::size_t> shape = expected["shape"];
    REQUIRE(tensor.shape() == tg::Shape(shape.begin(), shape.end()));
    check_summary(tensor.as<float>(), expected["values"], 1e-9);
  }
}

template <class Call> std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("A checkpoint folder has the fixture's config, the tokenizer and, in every type, the parameters") {
  const std::pair<const char*, const char*> dtypes[] = {{"F32", "float32"}, {"F16", "float16"}, {"BF16", "bfloat16"}};
  for (const std::string model : kModels)
    for (const auto& names : dtypes) {
      const char *dtype = names.first, *torch_dtype = names.second;
      CAPTURE(model);
      CAPTURE(dtype);
      const TemporaryFolder folder;
      CheckpointFolder published(model);
      published.store_as(dtype);
      const Tensors tensors = tensors_of(published, folder);
      CHECK(tensors.size() == gpt2_fixture(model)["tensors"].size());
      check_parameters(tensors, model, torch_dtype, "");

      auto config = nlohmann::json::parse(folder.read("model/config.json"));
      CHECK(config["torch_dtype"] == torch_dtype);
      config["torch_dtype"] = "float32";
      CHECK(config == gpt2_fixture(model)["config"]);
      for (const std::string name : {"vocab.json", "merges.txt"})
        CHECK(folder.read("model/" + name) == bytes_of(TAPEGRAD_SOURCES "/tests/gpt2/vocabulary/" + name));
      CHECK(tg::load_metadata(folder / "model" / "model.safetensors") == tg::Metadata{{"format", "pt"}});
    }
}

TEST_CASE("A checkpoint folder has GPT-2's buffers, head and prefix if requested") {
  const std::pair<const char*, const char*> dtypes[] = {{"U8", "uint8"}, {"BOOL", "bool"}, {"F32", "float32"}};
  for (const auto& names : dtypes) {
    const char *dtype = names.first, *torch_dtype = names.second;
    CAPTURE(dtype);
    const TemporaryFolder folder;
    CheckpointFolder published("gpt2");
    published.store_as("BF16");
    published.add_buffers(dtype);
    published.add_tied_head();
    published.add_prefix();
    const Tensors tensors = tensors_of(published, folder);
    check_parameters(tensors, "gpt2", "bfloat16", "transformer.");
    CHECK(tensors.size() == gpt2_fixture("gpt2")["tensors"].size() + 2 * 2 + 1);
    CHECK(tensors.at("lm_head.weight").as<float>() == tensors.at("transformer.wte.weight").as<float>());
    CHECK(tensors.at("transformer.h.1.attn.masked_bias").shape() == tg::Shape{});
    CHECK(tensors.at("transformer.h.1.attn.masked_bias").as<float>()() == -1e4f);
    const tg::StoredArray& mask = tensors.at("transformer.h.1.attn.bias");
    CHECK(mask.dtype() == torch_dtype);
    REQUIRE(mask.shape() == tg::Shape{1, 1, 24, 24});
  }
  const TemporaryFolder folder;
  CheckpointFolder published("gpt2");
  published.add_buffers("BOOL");
  const tg::BoolArray mask = tensors_of(published, folder).at("h.0.attn.bias").as<bool>();
  for (std::size_t t = 0; t < 24; ++t)
    for (std::size_t s = 0; s < 24; ++s) CHECK(mask(0, 0, t, s) == (s <= t));
}

TEST_CASE("A checkpoint folder has Llama's buffers and tied head if requested") {
  const TemporaryFolder folder;
  CheckpointFolder tied("llama tied"), wide("llama with wide heads");
  tied.add_buffers();
  tied.add_tied_head();
  const Tensors tensors = tensors_of(tied, folder);
  check_parameters(tensors, "llama tied", "float32", "");
  CHECK(tensors.size() == gpt2_fixture("llama tied")["tensors"].size() + 2 + 1);
  CHECK(tensors.at("lm_head.weight").as<float>() == tensors.at("model.embed_tokens.weight").as<float>());
  const auto inv_freq = tensors.at("model.layers.1.self_attn.rotary_emb.inv_freq").as<float>();
  CHECK(inv_freq == tg::Array<float>{1.0f, 0.1f, 0.01f, 0.001f});
  wide.add_buffers();
  CHECK(wide.tensors.at("model.layers.0.self_attn.rotary_emb.inv_freq").numbers.size() == 8);
}

TEST_CASE("A checkpoint folder is corrupted in the requested ways") {
  const TemporaryFolder folder;
  CheckpointFolder broken("gpt2");
  broken.tensors.erase("ln_f.bias");
  broken.reshape("wpe.weight", {23, 32});
  broken.config["n_head"] = 5;
  const Tensors tensors = tensors_of(broken, folder);
  CHECK(!tensors.contains("ln_f.bias"));
  CHECK(tensors.at("wpe.weight").shape() == tg::Shape{23, 32});
  CHECK(nlohmann::json::parse(folder.read("model/config.json"))["n_head"] == 5);
}

TEST_CASE("A file's tensor has the bytes of its type, or is refused") {
  const auto bytes = [](float x, const std::string& dtype) {
    return FileTensor{tg::Array<float>(tg::Shape{}, x), dtype}.bytes();
  };
  CHECK(bytes(-1.5f, "F16") == raw<std::uint16_t>({0xbe00}));
  CHECK(bytes(65504.0f, "F16") == raw<std::uint16_t>({0x7bff}));
  CHECK(bytes(0.0f, "F16") == raw<std::uint16_t>({0}));
  CHECK(bytes(-1.5f, "BF16") == raw<std::uint16_t>({0xbfc0}));
  CHECK(refusal([&] { bytes(0.1f, "F16"); }) == "F16 does not hold 0.100000");
  CHECK(refusal([&] { bytes(65536.0f, "F16"); }) == "F16 does not hold 65536.000000");
  CHECK(refusal([&] { bytes(0x1p-20f, "F16"); }).starts_with("F16 does not hold 0.000001"));
  CHECK(refusal([&] { bytes(INFINITY, "F16"); }) == "F16 does not hold inf");
  CHECK(refusal([&] { bytes(257.0f, "BF16"); }) == "BF16 does not hold 257.000000");
  CHECK(refusal([&] { bytes(0.5f, "U8"); }) == "U8 does not hold 0.500000");
  CHECK(refusal([&] { bytes(1.0f, "F8"); }) == "no type F8");
}
