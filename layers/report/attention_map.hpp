/// Looking at attention: which token attends to which, in files for NumPy and spreadsheets and as a picture.
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

#include "../../engine/tape/tensor.hpp"

namespace tapegrad {

/// The weights by which the tokens of one batch entry attend to each other. H heads, T queries, S keys. Those of
/// several layers stand one after another along the heads' axis.
template <class T = float> struct AttentionMap {
  std::vector<std::string> queries;         ///< the tokens that attend: T texts in UTF-8
  std::vector<std::string> keys;            ///< those that are attended to: S texts
  Array<T> weights;                         ///< (H, T, S)
  Array<T> gradients = Array<T>(Shape{0});  ///< (H, T, S), of the weights; without elements where none were kept
  std::size_t layers = 1;                   ///< whose heads these are: H / layers of each, the first layer's first
};

/// The map of one batch entry, with the gradients when the weights have some: after retain_grad() and a sweep.
/// weights: (B, H, T, S), as MultiHeadAttention gives them. Throws std::out_of_range for an entry that is not there and
/// std::invalid_argument when the tokens are not T and S.
template <class T>
AttentionMap<T> attention_map(const Tensor<T>& weights, std::size_t entry, std::vector<std::string> queries,
                              std::vector<std::string> keys);

/// Writes an array as NumPy's load reads it. Throws std::runtime_error naming the file when it cannot be written; what
/// was there before is then still there. So do the other two.
template <class T> void save_npy(const Array<T>& array, const std::filesystem::path& path);

/// Writes a line for each weight: layer, where there are several, head, query and key as numbers from 0, the two
/// tokens, the weight, and its gradient if there are any. Numbers read back as they were; tokens are quoted where they
/// need it.
template <class T> void save_csv(const AttentionMap<T>& map, const std::filesystem::path& path);

/// Draws the weights as a PNG, a panel for each head, a row of them for each of several layers: queries from top to
/// bottom, keys from left to right, the darker the greater the weight. gnuplot draws it: throws std::runtime_error when
/// it is not installed, or fails. Throws std::invalid_argument for a map without elements.
template <class T>
void save_picture(const AttentionMap<T>& map, const std::filesystem::path& path, const std::string& title);

}  // namespace tapegrad
