/// Trains a tokenizer like GPT-2's.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "tokenizer.hpp"

/// Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909) of arbitrary bytes. Starts from the 256 bytes. Then
/// repeatedly merges the most frequent pair of adjacent tokens within the pieces of GPT-2's expression; of equally
/// frequent pairs, the one with the smallest left id, then right id. Finally adds <|endoftext|>, treated as a separator
/// in the text. Calls `report` with the number of tokens after each merge; its exceptions end the training. Throws
/// std::invalid_argument for a vocabulary below 257 or larger than the pairs occurring at least twice permit, and for a
/// text of 2 GB or more.
Tokenizer train_tokenizer(std::string_view text, std::size_t vocabulary,
                          const std::function<void(std::size_t)>& report = {});
