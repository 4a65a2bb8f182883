#include "layout.hpp"

#include <cstddef>
#include <utility>

namespace {

/// Collects layers' weights and optional biases.
class Layout {
 public:
  void add(const std::string& file, std::vector<std::string> layers, bool bias, bool transposed = false) {
    for (const char* part : {".weight", ".bias"}) {
      const bool is_weight = part == std::string(".weight");
      if (!is_weight && !bias) continue;
      std::vector<std::string> parameters;
      for (const std::string& layer : layers) parameters.push_back(layer + part);
      stored_.push_back({file + part, std::move(parameters), transposed && is_weight});
    }
  }

  std::vector<StoredParameter> take() { return std::move(stored_); }

 private:
  std::vector<StoredParameter> stored_;
};

std::vector<StoredParameter> layout_of_gpt2(const ModelOptions& model) {
  Layout layout;
  layout.add("wte", {"embedding"}, false);
  layout.add("wpe", {"positions"}, false);
  for (std::size_t i = 0; i < model.layers; ++i) {
    const std::string from = "h." + std::to_string(i), to = "blocks." + std::to_string(i),
                      attention = to + ".attention.";
    layout.add(from + ".ln_1", {to + ".norm1"}, true);
    layout.add(from + ".attn.c_attn", {attention + "q_proj", attention + "k_proj", attention + "v_proj"}, true, true);
    layout.add(from + ".attn.c_proj", {attention + "out_proj"}, true, true);
    layout.add(from + ".ln_2", {to + ".norm2"}, true);
    layout.add(from + ".mlp.c_fc", {to + ".feed_forward.fc1"}, true, true);
    layout.add(from + ".mlp.c_proj", {to + ".feed_forward.fc2"}, true, true);
  }
  layout.add("ln_f", {"norm"}, true);
  return layout.take();
}

std::vector<StoredParameter> layout_of_llama(const ModelOptions& model) {
  Layout layout;
  layout.add("embed_tokens", {"embedding"}, false);
  for (std::size_t i = 0; i < model.layers; ++i) {
    const std::string from = "layers." + std::to_string(i), to = "blocks." + std::to_string(i);
    layout.add(from + ".input_layernorm", {to + ".norm1"}, false);
    for (const char* projection : {"q_proj", "k_proj", "v_proj"})
      layout.add(from + ".self_attn." + projection, {to + ".attention." + projection}, false);
    layout.add(from + ".self_attn.o_proj", {to + ".attention.out_proj"}, false);
    layout.add(from + ".post_attention_layernorm", {to + ".norm2"}, false);
    layout.add(from + ".mlp.gate_proj", {to + ".feed_forward.gate"}, false);
    layout.add(from + ".mlp.up_proj", {to + ".feed_forward.fc1"}, false);
    layout.add(from + ".mlp.down_proj", {to + ".feed_forward.fc2"}, false);
  }
  layout.add("norm", {"norm"}, false);
  return layout.take();
}

}  // namespace

std::string prefix_of(Family family) { return family == Family::gpt2 ? "transformer." : "model."; }

std::vector<StoredParameter> layout_of(const Config& config) {
  auto stored = config.family == Family::gpt2 ? layout_of_gpt2(config.model) : layout_of_llama(config.model);
  for (StoredParameter& parameter : stored) parameter.name = prefix_of(config.family) + parameter.name;
  if (!config.model.tie) stored.push_back({"lm_head.weight", {"head.weight"}});
  return stored;
}

std::vector<std::string> ignored_names(const Config& config) {
  std::vector<std::string> names;
  if (config.family == Family::gpt2)
    names = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"};
  else
    names = {"model.layers.*.self_attn.rotary_emb.inv_freq"};
  if (config.model.tie) names.push_back("lm_head.weight");
  return names;
}
