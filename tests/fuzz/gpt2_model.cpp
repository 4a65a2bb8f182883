/// Fuzzes gpt2's folders of configurations, weights and adapters: a loaded model works, and is the same after saving.
#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../examples/gpt/continuation.hpp"
#include "../../examples/gpt2/adapter.hpp"
#include "../../examples/gpt2/pretrained.hpp"
#include "../../examples/gpt2/score.hpp"
#include "checkpoints.hpp"
#include "gpt2_folder.hpp"

namespace tg = tapegrad;
using fuzz::Gpt2Folder;

namespace {

constexpr char kBetweenFiles = '\x1e';

/// The checkpoint of an input: its header, and on the next line the number of data bytes, all of them 0.
std::string checkpoint_of(std::string_view part) {
  constexpr std::size_t most = 1 << 16;
  const std::string header(fuzz::take_until(part, '\n'));
  std::size_t bytes = 0;
  std::from_chars(part.data(), part.data() + part.size(), bytes);
  return checkpoint(header, std::string(std::min(bytes, most), '\0'));
}

/// The part of an input for a checkpoint.
std::string part_of(const std::filesystem::path& file) {
  const std::string input = fuzz::input_of(bytes_of(file));
  const std::size_t numbers = input.find('\n') + 1;
  return input.substr(0, numbers) + std::to_string(input.size() - numbers);
}

void write_tokenizer(const Gpt2Folder& folder) {
  folder.write("vocab.json", "{\x01,\"<|endoftext|>\":256}");
  folder.write("merges.txt", "#version: 0.2\n");
}

Pretrained read(const std::filesystem::path& folder) { return with_weights(read_description(folder), folder); }

/// Its logits for a text. Also continues and scores the text; this may throw if logits are not finite.
tg::Array<float> use(Pretrained& pretrained) {
  auto& [config, tokenizer, model, other_files] = pretrained;
  tg::eval(model);
  examples::Ids ids = tokenizer.encode_alone("ab");
  fuzz::program_refusal([&, &context = config.model.context, &model = model] {
    Continuation continuation(model, context, ids, {.temperature = 0});
    for (int i = 0; i < 3; ++i) continuation.next();
  });
  fuzz::program_refusal([&, &context = config.model.context, &model = model] { score(model, context, ids); });
  ids.resize(std::min(ids.size(), config.model.context));
  return model(tg::int_array(ids, {std::size_t{1}, ids.size()})).value();
}

void expect_same(Pretrained& saved, Pretrained& read) {
  const tg::Array<float> expected = use(saved), given = use(read);
  const auto is_same = [](float a, float b) { return a == b || (a != a && b != b); };
  fuzz::expect(std::ranges::equal(expected, given, is_same), "a model that is another when it was saved");
}

void check_saved(Pretrained& pretrained) {
  const Gpt2Folder to;
  save_pretrained(pretrained, to.path());
  Pretrained again = read(to.path());
  expect_same(pretrained, again);
}

/// Loads the folder's adapter, saves it and merges it.
void check_adapter(Pretrained pretrained, const Gpt2Folder& folder) {
  load_adapter(pretrained, folder.path());
  const Gpt2Folder to;
  save_adapter(pretrained, to.path());
  Pretrained again = read(folder.path());
  load_adapter(again, to.path());
  expect_same(pretrained, again);
  Pretrained whole = merged(pretrained);
  check_saved(whole);
}

}  // namespace

void fuzz::fuzz_one(std::string_view input) {
  const Gpt2Folder folder;
  write_tokenizer(folder);
  folder.write("config.json", take_until(input, kBetweenFiles));
  write_bytes(folder.path() / "model.safetensors", checkpoint_of(take_until(input, kBetweenFiles)));
  folder.write("adapter_config.json", take_until(input, kBetweenFiles));
  write_bytes(folder.path() / "adapter_model.safetensors", checkpoint_of(take_until(input, kBetweenFiles)));

  std::optional<Pretrained> pretrained;
  program_refusal([&] { pretrained = read(folder.path()); });
  if (!pretrained) return;
  check_saved(*pretrained);
  program_refusal([&] { check_adapter(*pretrained, folder); });
}

std::vector<std::string> fuzz::seeds() {
  const std::string gpt2 =
      R"({"model_type":"gpt2","vocab_size":257,"n_embd":2,"n_layer":1,"n_head":1,"n_positions":3,"n_inner":null,)"
      R"("activation_function":"gelu_new","layer_norm_epsilon":1e-05,"scale_attn_weights":true,"eos_token_id":256,)"
      R"("tie_word_embeddings":true})";
  const std::string llama =
      R"({"model_type":"llama","vocab_size":257,"hidden_size":4,"num_hidden_layers":1,"num_attention_heads":2,)"
      R"("num_key_value_heads":1,"max_position_embeddings":3,"intermediate_size":3,"rms_norm_eps":1e-06,)"
      R"("hidden_act":"silu","rope_theta":10000.0,"rope_scaling":null,"eos_token_id":[255,256]})";
  std::vector<std::string> inputs;
  for (const std::string& json : {gpt2, llama}) {
    const Gpt2Folder folder;
    write_tokenizer(folder);
    folder.write("config.json", json);
    Config config = read_config(folder.path());
    LanguageModel<> model(config.vocabulary, config.model);
    Pretrained pretrained{std::move(config), Tokenizer::read(folder.path()), std::move(model)};
    const Gpt2Folder saved;
    save_pretrained(pretrained, saved.path());
    add_updates(pretrained.model, 1, 0);
    save_adapter(pretrained, saved.path());
    inputs.push_back(json + kBetweenFiles + part_of(saved.path() / "model.safetensors") + kBetweenFiles +
                     nlohmann::json::parse(bytes_of(saved.path() / "adapter_config.json")).dump() + kBetweenFiles +
                     part_of(saved.path() / "adapter_model.safetensors"));
  }
  return inputs;
}
