#include "adapter.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "files.hpp"
#include "json_file.hpp"
#include "json_settings.hpp"
#include "layout.hpp"

namespace fs = std::filesystem;
namespace tg = tapegrad;
using nlohmann::json;

namespace {

constexpr const char *config_name = "adapter_config.json", *weights_name = "adapter_model.safetensors";

/// A weight in the file with a trainable update, and the layers of the model concatenated in it, in order.
struct Target {
  std::string name;  ///< in the file, without .weight: "transformer.h.0.attn.c_attn"
  std::vector<tg::Linear<>*> layers;
};

/// An attention layer's projections with their field names.
std::array<std::pair<std::string, tg::Linear<>*>, 4> projections_of(tg::MultiHeadAttention<>& attention) {
  return {{{"q_proj", &attention.q_proj},
           {"k_proj", &attention.k_proj},
           {"v_proj", &attention.v_proj},
           {"out_proj", &attention.out_proj}}};
}

/// The targets of all attention projections.
std::vector<Target> targets_of(LanguageModel<>& model, const Config& config) {
  std::map<std::string, tg::Linear<>*> layers;
  for (std::size_t i = 0; i < model.blocks.size(); ++i)
    for (const auto& [name, layer] : projections_of(model.blocks[i].attention))
      layers["blocks." + std::to_string(i) + ".attention." + name + ".weight"] = layer;
  std::vector<Target> targets;
  for (const StoredParameter& stored : layout_of(config)) {
    if (!layers.contains(stored.parameters.front())) continue;
    Target& target = targets.emplace_back(Target{stored.name.substr(0, stored.name.rfind('.')), {}});
    for (const std::string& parameter : stored.parameters) target.layers.push_back(layers.at(parameter));
  }
  return targets;
}

/// The target's name within its block: "attn.c_attn", "self_attn.q_proj".
std::string kind_of(const Target& target) {
  const std::size_t last = target.name.rfind('.'), before = target.name.rfind('.', last - 1);
  return target.name.substr(before + 1);
}

/// The name of a target's A or B below base_model.
std::string name_below_base(const Target& target, const char* letter) {
  return "model." + target.name + ".lora_" + letter + ".weight";
}

std::string name_of(const Target& target, const char* letter) {
  return "base_model." + name_below_base(target, letter);
}

/// The updates in a file. All their names start with base_model.
struct Updates {
  std::map<std::string, std::optional<tg::Array<float>>> base_model;
  TAPEGRAD_FIELDS(base_model)

  std::optional<tg::Array<float>>& part(const Target& target, const char* letter) {
    return base_model[name_below_base(target, letter)];
  }
};

/// Joins the updates of n layers with the same input into one update of their concatenated weights: A stacked, B
/// block-diagonal. -> A (n r, in), B (all outputs, n r)
std::pair<tg::Array<float>, tg::Array<float>> joined(const Target& target) {
  std::size_t outputs = 0;
  for (const tg::Linear<>* layer : target.layers) outputs += layer->weight.shape()[0];
  const std::size_t rank = target.layers.front()->low_rank->A.shape()[0], all = rank * target.layers.size();
  std::vector<tg::Tensor<float>> below;
  tg::Array<float> b(tg::Shape{outputs, all}, 0.0f);
  std::size_t row = 0, column = 0;
  for (const tg::Linear<>* layer : target.layers) {
    below.push_back(layer->low_rank->A.detach());
    const tg::Array<float>& of_layer = layer->low_rank->B.value();
    for (std::size_t r = 0; r < of_layer.shape()[0]; ++r, ++row)
      for (std::size_t c = 0; c < rank; ++c) b(row, column + c) = of_layer(r, c);
    column += rank;
  }
  return {tg::cat(below).value(), std::move(b)};
}

}  // namespace

std::vector<std::string> adapter_files() { return {config_name, weights_name}; }

void add_updates(LanguageModel<>& model, std::size_t rank, double alpha) {
  for (const auto& parameter : tg::parameters(model)) parameter->set_requires_grad(false);
  for (auto& block : model.blocks)
    for (const auto& [name, layer] : projections_of(block.attention))
      tg::add_low_rank(*layer, rank, alpha > 0 ? alpha : 2 * static_cast<double>(rank));
}

tg::Parameters<float> trained_parameters(LanguageModel<>& model) {
  tg::Parameters<float> parameters;
  for (const auto& parameter : tg::parameters(model))
    if (parameter->requires_grad()) parameters.push_back(parameter);
  return parameters;
}

Pretrained merged(const Pretrained& pretrained) {
  Pretrained copy = pretrained;
  tg::merge_low_rank(copy.model);
  return copy;
}

void save_adapter(const Pretrained& pretrained, const fs::path& folder) {
  LanguageModel<> model = pretrained.model;  // shares the arrays
  Updates updates;
  json ranks = json::object(), alphas = json::object(), kinds = json::array();
  std::size_t least = 0;
  double alpha = 0;
  for (const Target& target : targets_of(model, pretrained.config)) {
    auto [a, b] = joined(target);
    const std::string kind = kind_of(target);
    const std::size_t rank = a.shape()[0];
    least = rank / target.layers.size();
    alpha = target.layers.front()->low_rank->alpha;
    if (!ranks.contains(kind)) kinds.push_back(kind);
    ranks[kind] = rank;
    alphas[kind] = alpha * static_cast<double>(target.layers.size());
    updates.part(target, "A") = std::move(a);
    updates.part(target, "B") = std::move(b);
  }
  const json config{{"peft_type", "LORA"},
                    {"task_type", "CAUSAL_LM"},
                    {"r", least},
                    {"lora_alpha", alpha},
                    {"rank_pattern", ranks},
                    {"alpha_pattern", alphas},
                    {"lora_dropout", 0.0},
                    {"bias", "none"},
                    {"fan_in_fan_out", pretrained.config.family == Family::gpt2},
                    {"target_modules", kinds},
                    {"inference_mode", true}};
  replace_model(folder, config_name, config.dump(2) + '\n', [&] {
    tg::save(updates, folder / weights_name, {{"format", "pt"}});
  });
}

namespace {

void require_finite(const tg::Array<float>& update, const std::string& name, const fs::path& file) {
  if (!std::ranges::all_of(update, [](float number) { return std::isfinite(number); }))
    throw std::runtime_error(file.string() + ": expected only finite numbers in " + name);
}

/// Splits a target's stored update over its layers.
void set_updates(const Target& target, const tg::Array<float>& a, const tg::Array<float>& b, std::size_t rank,
                 double scale, const std::string& file) {
  std::size_t outputs = 0;
  for (const tg::Linear<>* layer : target.layers) outputs += layer->weight.shape()[0];
  const std::size_t inputs = target.layers.front()->weight.shape()[1];
  const auto require = [&](const char* part, const tg::Shape& given, const tg::Shape& expected) {
    if (given != expected)
      throw std::runtime_error(file + ": expected " + name_of(target, part) + " of shape " + tg::to_string(expected) +
                               ", got " + tg::to_string(given));
  };
  require("A", a.shape(), {rank, inputs});
  require("B", b.shape(), {outputs, rank});
  std::size_t first = 0;
  for (tg::Linear<>* layer : target.layers) {
    const std::size_t rows = layer->weight.shape()[0];
    tg::Array<float> of_layer(tg::Shape{rows, rank});
    std::copy_n(b.data() + first * rank, of_layer.size(), of_layer.data());
    layer->low_rank = tg::LowRank<>{.A = tg::Parameter<float>(tg::Array<float>(a)),
                                    .B = tg::Parameter<float>(std::move(of_layer)),
                                    .alpha = scale * static_cast<double>(rank)};
    first += rows;
  }
}

/// Throws for unsupported kinds of updates and for settings with changes beyond them.
void check_settings(const JsonSettings& settings) {
  settings.choice<bool>("peft_type", nullptr, {{"LORA", true}});
  settings.require("bias", "none");
  for (const char* other : {"use_dora", "lora_bias"}) settings.require(other, false);
  for (const char* other : {"layer_replication", "alora_invocation_tokens", "megatron_config"})
    settings.require(other, nullptr);
  settings.require("modules_to_save", json::array());
  const char* first = "init_lora_weights";  // some PEFT initializations modify base weights
  if (settings.has(first) && !settings.is_flag(first))
    settings.choice<bool>(first, nullptr, {{"gaussian", true}, {"eva", true}, {"orthogonal", true}});
}

/// A setting with a common value and a pattern of values for individual targets. As in PEFT, a pattern's keys are names
/// of targets or suffixes of them. Throws for regular expressions, which only PEFT accepts.
class TargetSetting {
 public:
  TargetSetting(const JsonSettings& settings, const char* pattern, const char* default_name)
      : settings_(settings), pattern_(pattern), default_(default_name) {
    const auto is_plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
    for (const auto& [name, value] : settings.members(pattern).items()) {
      if (!std::ranges::all_of(name, is_plain)) settings.refuse(pattern, "module names", name);
      numbers_.emplace(name, settings.below(pattern).positive(name.c_str()));
    }
  }

  double of(const Target& target) const {
    const std::optional<double> own = in_pattern(target);
    return own ? *own : settings_.positive(default_);
  }

  /// Throws for the target's value, naming the setting it came from.
  [[noreturn]] void refuse(const Target& target, const std::string& expected) const {
    settings_.refuse(in_pattern(target) ? pattern_ : default_, expected, of(target));
  }

 private:
  std::optional<double> in_pattern(const Target& target) const {
    std::optional<double> found;
    for (const auto& [name, number] : numbers_) {
      if (target.name != name && !target.name.ends_with('.' + name)) continue;
      if (found && *found != number)
        settings_.refuse(pattern_, "one number for " + target.name, settings_.members(pattern_));
      found = number;
    }
    return found;
  }

  const JsonSettings& settings_;
  const char *pattern_, *default_;
  std::map<std::string, double> numbers_;  // the pattern's values
};

/// The scale of a target's update.
double scale_of(const Target& target, const TargetSetting& ranks, const TargetSetting& alphas, bool by_root) {
  const double rank = ranks.of(target), alpha = alphas.of(target);
  if (!(rank <= 1e6 && rank == std::floor(rank))) ranks.refuse(target, "a whole number as rank");
  const double scale = alpha / (by_root ? std::sqrt(rank) : rank);  // root: arXiv:2312.03732
  if (scale > std::numeric_limits<float>::max()) alphas.refuse(target, "a scale in float's range");
  return scale;
}

}  // namespace

void load_adapter(Pretrained& pretrained, const fs::path& folder) {
  const fs::path file = folder / config_name, weights = folder / weights_name;
  require_complete_model(folder, config_name);
  const json config = read_json(file);
  const JsonSettings settings(file.string(), config);
  check_settings(settings);
  LanguageModel<> model = pretrained.model;  // shares the arrays
  const std::vector<Target> targets = targets_of(model, pretrained.config);
  Updates updates;
  for (const Target& target : targets)
    for (const char* letter : {"A", "B"}) updates.part(target, letter);
  tg::load(updates, weights);
  const TargetSetting ranks(settings, "rank_pattern", "r"), alphas(settings, "alpha_pattern", "lora_alpha");
  const bool by_root = settings.flag_or("use_rslora", false);
  bool is_empty = true;
  for (const Target& target : targets) {
    const auto &a = updates.part(target, "A"), &b = updates.part(target, "B");
    if (a.has_value() != b.has_value())
      throw std::runtime_error(weights.string() + ": expected " + name_of(target, a ? "B" : "A") + " next to " +
                               name_of(target, a ? "A" : "B") + ", got none");
    if (!a) continue;
    is_empty = false;
    for (const char* letter : {"A", "B"})
      require_finite(*updates.part(target, letter), name_of(target, letter), weights);
    const double scale = scale_of(target, ranks, alphas, by_root);
    set_updates(target, *a, *b, static_cast<std::size_t>(ranks.of(target)), scale, weights.string());
  }
  if (is_empty)
    throw std::runtime_error(weights.string() + ": expected updates of attention projections, such as " +
                             name_of(targets.front(), "A") + ", got none");
  pretrained.model = std::move(model);
}
