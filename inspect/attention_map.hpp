/// Attention maps as files for NumPy and spreadsheets, and as pictures.
///
///     tg::Tape tape;
///     auto [y, weights] = attention.with_weights(x, x, x);
///     weights.retain_grad();
///     loss(y).backward();
///     const auto map = tg::attention_map(weights, 0, words, words);
///     tg::save_csv(map, "attention.csv");
///     tg::save_picture(map, "attention.png", "The first sentence");
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "../engine/tape/tensor.hpp"

namespace tapegrad {

/// The attention weights of one batch entry: H heads, T queries, S keys. Several layers are concatenated along the
/// heads' axis.
template <class T = float> struct AttentionMap {
  std::vector<std::string> queries;         ///< the attending tokens: T texts in UTF-8
  std::vector<std::string> keys;            ///< the attended tokens: S texts in UTF-8
  Array<T> weights;                         ///< (H, T, S)
  Array<T> gradients = Array<T>(Shape{0});  ///< (H, T, S), of the weights; empty without gradients
  std::size_t layers = 1;                   ///< number of layers, with H / layers heads each
};

/// The map of one batch entry, with gradients after retain_grad() and a backward pass. weights: (B, H, T, S), from
/// MultiHeadAttention::with_weights. Throws std::out_of_range for a missing entry, and std::invalid_argument unless
/// there are T and S tokens.
template <class T>
AttentionMap<T> attention_map(const Tensor<T>& weights, std::size_t entry, std::vector<std::string> queries,
                              std::vector<std::string> keys);

/// Writes an array for NumPy's load. Like the functions below, throws std::runtime_error naming the file if it cannot
/// be written, and leaves the previous file intact.
template <class T> void save_npy(const Array<T>& array, const std::filesystem::path& path);

/// Writes a line for each weight: layer (if several), head, query and key as numbers from 0, the two tokens, the
/// weight, and its gradient if available. Numbers round-trip exactly; tokens are quoted if needed.
template <class T> void save_csv(const AttentionMap<T>& map, const std::filesystem::path& path);

/// Draws the weights as a PNG with a panel for each head and a row for each layer: queries from top to bottom, keys
/// from left to right, darker for larger weights. Throws std::runtime_error if gnuplot is missing or fails, and
/// std::invalid_argument for an empty map.
template <class T>
void save_picture(const AttentionMap<T>& map, const std::filesystem::path& path, const std::string& title);

}  // namespace tapegrad
