#include "tokenizer_parts.hpp"

#include <algorithm>
#include <numeric>

#include "byte_level.hpp"

TokenizerParts byte_tokens() {
  std::vector<std::size_t> order(256);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [](std::size_t byte) { return byte_characters()[byte]; });
  TokenizerParts parts;
  for (const std::size_t byte : order) {
    parts.bytes[byte] = static_cast<TokenId>(parts.tokens.size());
    parts.tokens.emplace_back(1, static_cast<char>(byte));
  }
  return parts;
}
