/// Making a tokenizer of GPT-2's kind for a text.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "tokenizer.hpp"

/// Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909): the tokens of the 256 bytes; then one by one, of the
/// tokens side by side in the pieces that the expression of GPT-2 cuts the text into, the pair that stands in most
/// places becomes one (of several, that of the smaller left id, then of the smaller right id); <|endoftext|> last,
/// which parts the text where it stands in it. Texts are any bytes. report: called with the number of tokens after each
/// merge; what it throws ends the training. Throws std::invalid_argument for a vocabulary of fewer than 257, or of more
/// than the pairs that come twice or more make, and for a text of 2 GB or more.
Tokenizer train_tokenizer(std::string_view text, std::size_t vocabulary,
                          const std::function<void(std::size_t)>& report = {});
