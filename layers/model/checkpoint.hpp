/// Checkpoints: a model's parameters in a safetensors file (https://github.com/huggingface/safetensors), under the
/// names that PyTorch gives them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "fields.hpp"

namespace tapegrad {

/// Texts, in UTF-8, that a checkpoint keeps beside the parameters: a vocabulary, settings.
using Metadata = std::map<std::string, std::string>;

namespace detail {

template <class T>
void save_parameters(NamedConstParameters<T> named, const std::filesystem::path& path, const Metadata& metadata);
template <class T> void load_parameters(const NamedParameters<T>& named, const std::filesystem::path& path);
template <class T> void load_parameters(const NamedParameters<T>& named, std::span<const std::byte> bytes);

}  // namespace detail

/// Writes a model's parameters, as F32 or F64, to a temporary file beside `path`, syncs it to the disk and renames it:
/// a crash at any time leaves the old file or the new one, whole. Throws std::runtime_error when the file cannot be
/// written and std::invalid_argument for metadata that is not UTF-8.
template <class M> void save(const M& model, const std::filesystem::path& path, const Metadata& metadata = {}) {
  detail::save_parameters<detail::ScalarOf<M>>(named_parameters(model), path, metadata);
}

/// Reads a model's parameters, F16, BF16, F32 or F64, whichever of F32 and F64 they are in the model. The file must
/// have the tensors that the model has, of the same shapes, and no others; throws std::runtime_error naming the file
/// and the tensor otherwise, and for a file that is not a well-formed checkpoint, before anything of the model has
/// changed.
template <class M> void load(M& model, const std::filesystem::path& path) {
  static_assert(!std::is_const_v<M>, "tapegrad: expected a model to load into, given one that is const");
  detail::load_parameters<detail::ScalarOf<M>>(named_parameters(model), path);
}

/// The same from the bytes of a file, such as tapegrad_embed puts into a program. They may lie unaligned.
template <class M> void load(M& model, std::span<const std::byte> bytes) {
  static_assert(!std::is_const_v<M>, "tapegrad: expected a model to load into, given one that is const");
  detail::load_parameters<detail::ScalarOf<M>>(named_parameters(model), bytes);
}

/// Reads the metadata alone. Throws std::runtime_error for a file that is not a well-formed checkpoint.
Metadata load_metadata(const std::filesystem::path& path);
Metadata load_metadata(std::span<const std::byte> bytes);

}  // namespace tapegrad
