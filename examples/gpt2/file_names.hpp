/// File names in a model's folder, as in Hugging Face's libraries.
#pragma once

namespace file_names {

inline constexpr const char *config = "config.json", *weights = "model.safetensors";

/// The tokenizer, in one file or two.
inline constexpr const char *tokenizer = "tokenizer.json", *vocabulary = "vocab.json", *merges = "merges.txt";

}  // namespace file_names
