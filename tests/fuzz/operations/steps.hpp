/// Operations with arguments beyond a tensor, a number or an axis. Each draws its own.
#pragma once

#include "program.hpp"

namespace fuzz::steps {

// elementwise.cpp
Step power(Draw& d);
Step product(Draw& d);
Step linear(Draw& d);
Step einsum(Draw& d);
Step clamp(Draw& d);
Step softplus(Draw& d);
Step masked_fill(Draw& d);
Step where(Draw& d);
Step dropout(Draw& d);

// views.cpp
Step transpose(Draw& d);
Step permute(Draw& d);
Step reshape(Draw& d);
Step unsqueeze(Draw& d);
Step expand(Draw& d);
Step repeat(Draw& d);
Step repeat_interleave(Draw& d);
Step select(Draw& d);
Step narrow(Draw& d);
Step split(Draw& d);
Step roll(Draw& d);
Step cat(Draw& d);
Step stack(Draw& d);

// rows.cpp
Step var(Draw& d);
Step amax(Draw& d);
Step gather(Draw& d);
Step max(Draw& d);
Step argmax(Draw& d);
Step topk(Draw& d);
Step layer_norm(Draw& d);
Step rms_norm(Draw& d);
Step embedding(Draw& d);
Step scaled_dot_product_attention(Draw& d);
Step multi_head_attention(Draw& d);
Step rotary_embedding(Draw& d);
Step masked_softmax(Draw& d);

// losses.cpp
Step cross_entropy_of_labels(Draw& d);
Step cross_entropy_of_probabilities(Draw& d);
Step binary_cross_entropy(Draw& d);
Step mse_loss(Draw& d);
Step one_hot(Draw& d);
Step causal_mask(Draw& d);
Step padding_mask(Draw& d);

}  // namespace fuzz::steps
