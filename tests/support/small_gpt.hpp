/// A GPT of one block, for tests about threads instead of results: small, but large enough for loops and products that
/// the pool splits.
#pragma once

#include <tapegrad/tapegrad.hpp>

struct SmallGpt {
  tapegrad::Embedding<> tokens{50, 64};
  tapegrad::TransformerBlock<> block{64, 4};
  tapegrad::Linear<> head{64, 50};
  TAPEGRAD_FIELDS(tokens, block, head)

  tapegrad::Tensor<float> operator()(const tapegrad::IntArray& ids) const {
    return head(block(tokens(ids), tapegrad::AttentionMask::causal()));
  }
};
