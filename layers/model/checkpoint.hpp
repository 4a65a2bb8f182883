/// Checkpoints: a model or a training run in a safetensors file (https://github.com/huggingface/safetensors), named by
/// its fields. A model's file equals PyTorch's state_dict.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fields.hpp"

namespace tapegrad {

/// UTF-8 texts stored in a checkpoint next to the fields, such as a vocabulary or settings.
using Metadata = std::map<std::string, std::string>;

/// Maps names in a file to names in a model. By default they must match exactly, without missing or extra ones.
struct LoadOptions {
  std::string prefix{};                                   ///< loads only names with this prefix, such as "model."
  std::function<std::string(std::string name)> rename{};  ///< from the file's name without prefix to the model's
  /// Tensors that hold several of the model's: the end of a name, after renaming, and the ends of the model's names.
  /// Cut along axis 0 into equal parts, as in {{"in_proj_bias", {"q_proj.bias", "k_proj.bias", "v_proj.bias"}}}.
  std::map<std::string, std::vector<std::string>> split{};
  std::vector<std::string> allow_missing{};  ///< names in the model optional in the file; * matches any text
  std::vector<std::string> ignore{};  ///< names in the file, after renaming, optional in the model; * matches any text
};

namespace detail {

struct StoredTensor;

/// Calls visit(path, x) for each stored field with its text or array (a temporary if made on the fly), or std::nullopt
/// if it has neither now.
template <class M, class Visit> void for_each_stored(const M& model, Visit visit) {
  walk(model, [&]<class F>(const Path& path, const F& field) {
    if constexpr (is_text<F>) {
      if (const std::string* text = text_of(field)) return visit(path, *text);
      visit(path, std::nullopt);
    } else if constexpr (is_stored<F>) {
      if (FieldStorage<F>::has(field)) return visit(path, FieldStorage<F>::get(field));
      visit(path, std::nullopt);
    }
  });
}

/// Collects the fields of a traversal and writes them.
class CheckpointWriter {
 public:
  CheckpointWriter();
  ~CheckpointWriter();

  /// Adds an array, unchanged until write() or bytes(). The owner, if any, keeps it alive.
  template <class N> void add(std::string name, const Array<N>& array, std::shared_ptr<const void> owner = nullptr);
  template <class N> void add(std::string name, Array<N>&& array) = delete;  // it would be gone before write()
  void add(std::string name, const std::string& text);
  void write(const std::filesystem::path& path);
  std::vector<std::byte> bytes();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads the fields of a traversal. Requests all before reading the first number, and reads all before changing the
/// first field.
class CheckpointReader {
 public:
  CheckpointReader(const std::filesystem::path& path, const LoadOptions& options);
  CheckpointReader(std::span<const std::byte> bytes, const LoadOptions& options);
  ~CheckpointReader();

  /// A field's requirements on its tensor.
  struct Wanted {
    std::string name, shape;  ///< the shape in words: "of shape (2, 3)"
    std::function<bool(const Shape&)> fits;
    bool optional;
  };
  /// Null if the file lacks an optional tensor.
  template <class N> const StoredTensor* find(const Wanted& wanted);
  const std::string* find_text(const std::string& name, bool optional);
  /// True if a field keeps its value when the file lacks it.
  bool is_optional(const std::string& name) const;
  /// Throws if the file holds tensors the model does not have.
  void refuse_rest() const;

  template <class N> Array<N> read(const StoredTensor& tensor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The loading of one field.
struct LoadStep {
  std::function<void(CheckpointReader&)> read;  // optional
  std::function<void()> set;                    // does not fail
};

template <class F> void plan_load(CheckpointReader& reader, std::string name, F& field, std::vector<LoadStep>& steps) {
  if constexpr (is_text<F>) {
    constexpr bool optional = is_optional<F>;
    if (const std::string* text = reader.find_text(name, optional)) {
      steps.push_back({nullptr, [&field, text = *text]() mutable { field = std::move(text); }});
    } else if constexpr (optional) {
      if (!reader.is_optional(name)) steps.push_back({nullptr, [&field] { field.reset(); }});
    }
  } else if constexpr (is_stored<F>) {
    using Storage = FieldStorage<F>;
    using N = typename Storage::Number;
    constexpr bool optional = requires { Storage::reset(field); };
    const auto fits = [&field](const Shape& shape) { return Storage::fits(field, shape); };
    if (const StoredTensor* tensor = reader.find<N>({name, Storage::wanted(field), fits, optional})) {
      const auto made = std::make_shared<std::optional<decltype(Storage::make(std::declval<Array<N>>()))>>();
      steps.push_back({[=](CheckpointReader& from) { made->emplace(Storage::make(from.read<N>(*tensor))); },
                       [=, &field] { Storage::set(field, std::move(**made)); }});
    } else if constexpr (optional) {
      if (!reader.is_optional(name)) steps.push_back({nullptr, [&field] { Storage::reset(field); }});
    }
  }
}

template <class M> void load(M& model, CheckpointReader&& reader) {
  static_assert(!std::is_const_v<M>, "tapegrad: expected a model to load into, got a const one");
  std::vector<LoadStep> steps;
  walk(model, [&](const Path& path, auto& field) { plan_load(reader, path.text(), field, steps); });
  reader.refuse_rest();
  for (const LoadStep& step : steps)
    if (step.read) step.read(reader);
  for (const LoadStep& step : steps) step.set();
}

template <class M> void gather(const M& model, const Metadata& metadata, CheckpointWriter& writer) {
  for_each_stored(model, [&]<class Stored>(const Path& path, Stored&& stored) {
    if constexpr (!std::is_lvalue_reference_v<Stored>) {
      const auto owned = std::make_shared<const Stored>(std::move(stored));
      writer.add(path.text(), *owned, owned);
    } else if constexpr (!std::is_same_v<Stored, const std::nullopt_t&>) {
      writer.add(path.text(), stored);
    }
  });
  for (const auto& [name, text] : metadata) writer.add(name, text);
}

}  // namespace detail

/// Writes the fields of a model or run to a temporary file in the folder of `path`, syncs it to disk and renames it: a
/// crash leaves the complete old or new file, and possibly a .tapegrad-*.tmp removed by the next save in the folder.
/// Numbers keep their types; texts are stored with the metadata. Throws std::runtime_error if the file cannot be
/// written; std::invalid_argument for text other than UTF-8, metadata named like a field, and duplicate names;
/// std::logic_error for a weight held in bfloat16.
template <detail::ModelArgument M>
void save(const M& model, const std::filesystem::path& path, const Metadata& metadata = {}) {
  detail::CheckpointWriter writer;
  detail::gather(model, metadata, writer);
  writer.write(path);
}

/// The bytes of save()'s file, for load() from memory, such as for another process or a database. Throws
/// std::invalid_argument like save.
template <detail::ModelArgument M> std::vector<std::byte> save_bytes(const M& model, const Metadata& metadata = {}) {
  detail::CheckpointWriter writer;
  detail::gather(model, metadata, writer);
  return writer.bytes();
}

/// Reads the fields of a model or run, converting between floating-point types. The file must hold the model's tensors
/// in the same shapes and types and no others, except as allowed by the options; std::vectors of numbers and
/// std::optionals take the file's size. Otherwise, and for a malformed file, throws std::runtime_error naming the file
/// and the tensor, and the model is unchanged. The file is memory-mapped: if another program truncates it meanwhile, or
/// the disk fails, this program ends by SIGBUS. save() replaces files without truncating them.
template <detail::ModelArgument M>
void load(M& model, const std::filesystem::path& path, const LoadOptions& options = {}) {
  detail::load(model, detail::CheckpointReader(path, options));
}

/// The same from a file's bytes in memory, such as from CMake's tapegrad_embed.
template <detail::ModelArgument M>
void load(M& model, std::span<const std::byte> bytes, const LoadOptions& options = {}) {
  detail::load(model, detail::CheckpointReader(bytes, options));
}

/// Replaces another file next to a checkpoint, such as "mine/config.json", by these bytes. Throws std::runtime_error
/// naming the file if it cannot be written. After an error or a crash the previous file is intact, as with save().
void save_text(const std::string& text, const std::filesystem::path& path);

/// Reads only the metadata and the fields' texts. Throws std::runtime_error for a malformed file.
Metadata load_metadata(const std::filesystem::path& path);
/// The same from a file's bytes in memory.
Metadata load_metadata(std::span<const std::byte> bytes);

}  // namespace tapegrad
