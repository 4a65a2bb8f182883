#include "config.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../common/printable.hpp"
#include "json_file.hpp"

using nlohmann::json;

namespace {

/// Asks the settings of a file one by one. What is wrong with one is std::runtime_error, naming the file and it.
class Settings {
 public:
  Settings(std::string file, const json& settings) : file_(std::move(file)), settings_(settings) {}

  /// A whole number from 1 on.
  std::size_t size(const char* name) const {
    const json& value = at(name);
    constexpr std::size_t largest = std::numeric_limits<std::int32_t>::max();
    if (!value.is_number_integer() || value < 1 || value > largest)
      refuse(name, "a whole number from 1 to " + std::to_string(largest), value);
    return value;
  }
  std::size_t size_or(const char* name, std::size_t otherwise) const { return has(name) ? size(name) : otherwise; }

  double positive_or(const char* name, double otherwise) const {
    if (!has(name)) return otherwise;
    const json& value = at(name);
    if (!value.is_number() || !(value > 0.0) || !std::isfinite(value.get<double>()))
      refuse(name, "a number above 0", value);
    return value;
  }

  bool flag_or(const char* name, bool otherwise) const {
    if (!has(name)) return otherwise;
    if (!at(name).is_boolean()) refuse(name, "true or false", at(name));
    return at(name);
  }

  /// An id, or a list of ids.
  std::vector<std::int64_t> ids(const char* name) const {
    if (!has(name)) return {};
    const json list = at(name).is_array() ? at(name) : json::array({at(name)});
    for (const json& id : list)
      if (!id.is_number_integer()) refuse(name, "an id or a list of ids", at(name));
    return list;
  }

  /// The meaning of a name.
  template <class T>
  T choice(const char* name, const std::string& otherwise,
           std::initializer_list<std::pair<const char*, T>> choices) const {
    const json value = has(name) ? at(name) : json(otherwise);
    std::string names;
    for (const auto& [text, meaning] : choices) {
      if (value == text) return meaning;
      names += (names.empty() ? "" : ", ") + std::string(text);
    }
    refuse(name, "one of " + names, value);
  }

  /// Refuses a setting that is there and asks for something else than what is done.
  void require(const char* name, const json& expected) const {
    if (has(name) && at(name) != expected) refuse(name, expected.dump(), at(name));
  }

  bool has(const char* name) const { return settings_.contains(name) && !settings_.at(name).is_null(); }

  Settings below(const char* name) const {
    if (!at(name).is_object()) refuse(name, "an object", at(name));
    return {file_, at(name)};
  }

 private:
  const json& at(const char* name) const {
    const auto found = settings_.find(name);
    if (found == settings_.end()) throw std::runtime_error(file_ + ": expected a setting " + name + ", given none");
    return *found;
  }

  [[noreturn]] void refuse(const char* name, const std::string& expected, const json& given) const {
    throw std::runtime_error(file_ + ": " + name + ": expected " + expected + ", given " +
                             examples::printable(given.dump(), 60));
  }

  std::string file_;
  const json& settings_;
};

Config read_gpt2(const Settings& settings) {
  using tapegrad::Activation;
  for (const char* name : {"scale_attn_weights", "use_cache"}) settings.require(name, true);
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

/// The base of rotary positions, which newer files have in an object of its own.
double rotary_base(const Settings& settings) {
  settings.require("rope_scaling", nullptr);
  if (!settings.has("rope_parameters")) return settings.positive_or("rope_theta", 10000);
  const Settings parameters = settings.below("rope_parameters");
  parameters.require("rope_type", "default");
  return parameters.positive_or("rope_theta", 10000);
}

Config read_llama(const Settings& settings) {
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
    throw std::runtime_error(file + ": " + name + ": expected a number that divides " + std::to_string(whole) +
                             ", given " + std::to_string(part));
}

}  // namespace

Config read_config(const std::filesystem::path& folder) {
  const std::string file = (folder / "config.json").string();
  json read = read_json(file);
  const Settings settings(file, read);
  const auto read_family =
      settings.choice<Config (*)(const Settings&)>("model_type", "none", {{"gpt2", read_gpt2}, {"llama", read_llama}});
  Config config = read_family(settings);
  const ModelOptions& model = config.model;
  const bool is_gpt2 = config.family == Family::gpt2;
  require_dividing(file, is_gpt2 ? "n_head" : "num_attention_heads", model.heads, model.width);
  require_dividing(file, "num_key_value_heads", model.kv_heads == 0 ? model.heads : model.kv_heads, model.heads);
  if (model.positions == Positions::rotary && model.width / model.heads % 2 != 0)
    throw std::runtime_error(file + ": expected heads of an even width for rotary positions, given " +
                             std::to_string(model.width / model.heads));
  config.ends = settings.ids("eos_token_id");
  config.json = std::move(read);
  return config;
}
