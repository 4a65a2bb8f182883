// Options of layers.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include "default_options.hpp"

namespace tg = tapegrad;

TEST_CASE("Layers' options have PyTorch's defaults") {
  using Block = tg::TransformerBlockOptions;
  check_defaults(Block{}, Option{&Block::dropout, 0}, Option{&Block::attention_dropout, 0}, Option{&Block::bias, true},
                 Option{&Block::activation, tg::Activation::gelu}, Option{&Block::norm, tg::NormPlacement::first});
  check_defaults(tg::LayerNormOptions{}, Option{&tg::LayerNormOptions::eps, 1e-5},
                 Option{&tg::LayerNormOptions::bias, true});
  check_defaults(tg::SampleOptions{}, Option{&tg::SampleOptions::temperature, 1}, Option{&tg::SampleOptions::top_p, 1});
}

TEST_CASE("Layers' options keep all digits of a double, as in PyTorch") {
  using Block = tg::TransformerBlockOptions;
  check_digits(Block{}, &Block::dropout, &Block::attention_dropout, &Block::norm_eps, &Block::rotary_base);
  using Attention = tg::MultiHeadAttentionOptions;
  check_digits(Attention{}, &Attention::dropout, &Attention::rotary_base);
  check_digits(tg::LayerNormOptions{}, &tg::LayerNormOptions::eps);
  check_digits(tg::RMSNormOptions{}, &tg::RMSNormOptions::eps);
  check_digits(tg::BeamSearchOptions{}, &tg::BeamSearchOptions::length_penalty);
  check_digits(tg::SampleOptions{}, &tg::SampleOptions::temperature, &tg::SampleOptions::top_p);
}
