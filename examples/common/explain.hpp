/// Looking at what a trained model attends to: --explain.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <string>

namespace examples {

/// Throws std::runtime_error when the files of write_attention cannot be made under that name.
void require_attention_writable(const std::string& name);

/// Writes name.csv, name.npy and name.gradients.npy, draws name.png, and says so on standard output. Throws
/// std::runtime_error when a file cannot be written, or, after the others, the picture not be drawn.
void write_attention(const tapegrad::AttentionMap<float>& map, const std::string& name, const std::string& title);

}  // namespace examples
