/// The files of a model's folder, as Hugging Face's libraries name them.
#pragma once

namespace file_names {

inline constexpr const char *config = "config.json", *weights = "model.safetensors";

/// The tokenizer, in one file or in two.
inline constexpr const char *tokenizer = "tokenizer.json", *vocabulary = "vocab.json", *merges = "merges.txt";

}  // namespace file_names
