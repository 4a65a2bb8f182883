#include "config.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "file_names.hpp"
#include "files.hpp"
#include "json_file.hpp"
#include "json_settings.hpp"

using nlohmann::json;

namespace {

Config read_gpt2(const JsonSettings& settings) {
  using tapegrad::Activation;
  settings.require("scale_attn_weights", true);
  for (const char* name : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) settings.require(name, false);
  const std::size_t width = settings.size("n_embd");
  return {.family = Family::gpt2,
          .vocabulary = settings.size("vocab_size"),
          .model = {.layers = settings.size("n_layer"),
                    .heads = settings.size("n_head"),
                    .width = width,
                    .context = settings.size(settings.has("n_positions") ? "n_positions" : "n_ctx"),
                    .positions = Positions::learned,
                    .tie = settings.flag_or("tie_word_embeddings", true),
                    .norm = Norm::layer,
                    .norm_eps = settings.positive_or("layer_norm_epsilon", 1e-5),
                    .activation = settings.choice<Activation>("activation_function", "gelu_new",
                                                              {{"gelu_new", Activation::gelu_tanh},
                                                               {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                               {"gelu", Activation::gelu},
                                                               {"relu", Activation::relu},
                                                               {"silu", Activation::silu},
                                                               {"swish", Activation::silu}}),
                    .feed_forward = settings.size_or("n_inner", 4 * width),
                    .head_bias = false},
          .ends = {},
          .json = {}};
}

/// The base of rotary positions. Newer files store it in a separate object. Throws for scaled positions.
double rotary_base(const JsonSettings& settings) {
  double base = settings.positive_or("rope_theta", 10000);
  for (const char* object : {"rope_scaling", "rope_parameters"}) {
    if (!settings.has(object)) continue;
    const JsonSettings parameters = settings.below(object);
    for (const char* kind : {"rope_type", "type"}) parameters.require(kind, "default");
    parameters.require("factor", nullptr);
    base = parameters.positive_or("rope_theta", base);
  }
  return base;
}

Config read_llama(const JsonSettings& settings) {
  using tapegrad::Activation;
  for (const char* name : {"attention_bias", "mlp_bias"}) settings.require(name, false);
  settings.require("pretraining_tp", 1);
  settings.require("rope_interleaved", false);
  const std::size_t width = settings.size("hidden_size"), heads = settings.size("num_attention_heads");
  settings.require("head_dim", width / heads);
  return {.family = Family::llama,
          .vocabulary = settings.size("vocab_size"),
          .model = {.layers = settings.size("num_hidden_layers"),
                    .heads = heads,
                    .width = width,
                    .context = settings.size("max_position_embeddings"),
                    .positions = Positions::rotary,
                    .tie = settings.flag_or("tie_word_embeddings", false),
                    .norm = Norm::rms,
                    .norm_eps = settings.positive_or("rms_norm_eps", 1e-6),
                    .activation = settings.choice<Activation>("hidden_act", "silu", {{"silu", Activation::swiglu}}),
                    .feed_forward = settings.size("intermediate_size"),
                    .kv_heads = settings.size_or("num_key_value_heads", heads),
                    .rotary_base = rotary_base(settings),
                    .bias = false,
                    .head_bias = false},
          .ends = {},
          .json = {}};
}

void require_dividing(const std::string& file, const char* name, std::size_t part, std::size_t whole) {
  if (whole % part != 0)
    throw std::runtime_error(file + ": " + name + ": expected a divisor of " + std::to_string(whole) + ", got " +
                             std::to_string(part));
}

}  // namespace

Config read_config(const std::filesystem::path& folder) {
  const std::string file = (folder / file_names::config).string();
  require_complete_model(folder, file_names::config);
  json read = read_json(file);
  const JsonSettings settings(file, read);
  settings.require("quantization_config", nullptr);
  const auto read_family = settings.choice<Config (*)(const JsonSettings&)>(
      "model_type", nullptr, {{"gpt2", read_gpt2}, {"llama", read_llama}});
  Config config = read_family(settings);
  const ModelOptions& model = config.model;
  const bool is_gpt2 = config.family == Family::gpt2;
  require_dividing(file, is_gpt2 ? "n_head" : "num_attention_heads", model.heads, model.width);
  require_dividing(file, "num_key_value_heads", model.kv_heads == 0 ? model.heads : model.kv_heads, model.heads);
  if (model.positions == Positions::rotary && model.width / model.heads % 2 != 0)
    throw std::runtime_error(file + ": expected an even width of heads for rotary positions, got " +
                             std::to_string(model.width / model.heads));
  config.ends = settings.ids("eos_token_id");
  config.json = std::move(read);
  return config;
}
