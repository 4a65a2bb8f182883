/// Checkpoints: a model, or a whole run, in a safetensors file (https://github.com/huggingface/safetensors), under the
/// names that its fields have. A model's file is PyTorch's state_dict.
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

/// Texts, in UTF-8, that a checkpoint keeps beside the fields: a vocabulary, settings.
using Metadata = std::map<std::string, std::string>;

/// How the names in a file and in a model are brought together. Otherwise they must be the same, with none missing and
/// none left over.
struct LoadOptions {
  std::string prefix{};                                   ///< takes the part of the file whose names begin so: "model."
  std::function<std::string(std::string name)> rename{};  ///< from a name in the file, less the prefix, to the model's
  std::vector<std::string> allow_missing{};  ///< the model's names that the file may lack; * stands for any text
  std::vector<std::string> ignore{};         ///< names, after renaming, that the model may lack; * stands for any text
};

namespace detail {

struct StoredTensor;

/// Calls visit(path, x) for each field that a file keeps, with what it has of it: its text, or its array, as a
/// temporary where it is made for that; std::nullopt where it has neither now.
template <class M, class Visit> void for_each_stored(const M& model, Visit visit) {
  walk(model, [&]<class F>(const Path& path, const F& field) {
    if constexpr (is_text<F>) {
      if (const std::string* text = text_of(field)) return visit(path, *text);
      visit(path, std::nullopt);
    } else if constexpr (is_kept<F>) {
      if (Kept<F>::has(field)) return visit(path, Kept<F>::get(field));
      visit(path, std::nullopt);
    }
  });
}

/// Gathers what a walk finds, and writes it.
class CheckpointWriter {
 public:
  CheckpointWriter();
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// An array that stays as it is until write(), or a new one.
  template <class N> void add(std::string name, const Array<N>& array);
  template <class N> void add(std::string name, Array<N>&& array);
  void add(std::string name, const std::string& text);
  void write(const std::filesystem::path& path, const Metadata& metadata);
  std::vector<std::byte> bytes(const Metadata& metadata);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Answers what a walk asks a file for. All of it is asked for before the first number is read, and read before the
/// first field changes.
class CheckpointReader {
 public:
  CheckpointReader(const std::filesystem::path& path, const LoadOptions& options);
  CheckpointReader(std::span<const std::byte> bytes, const LoadOptions& options);
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  /// What a field wants of its tensor.
  struct Wanted {
    std::string name, shape;  ///< the shape in words: "of shape (2, 3)"
    std::function<bool(const Shape&)> fits;
    bool may_lack;
  };
  /// Null where the file has no such tensor and need not have it.
  template <class N> const StoredTensor* find(const Wanted& wanted);
  const std::string* find_text(const std::string& name, bool may_lack);
  /// Whether a field keeps what it has where the file has nothing.
  bool may_miss(const std::string& name) const;
  /// Refuses what nobody asked for.
  void refuse_rest() const;

  template <class N> Array<N> read(const StoredTensor& tensor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A field's part in loading.
struct LoadStep {
  std::function<void(CheckpointReader&)> read;
  std::function<void()> set;  // does not fail
};

template <class F> void plan_load(CheckpointReader& reader, std::string name, F& field, std::vector<LoadStep>& steps) {
  const auto read_nothing = [](CheckpointReader&) {};
  if constexpr (is_text<F>) {
    constexpr bool may_lack = is_optional<F>;
    if (const std::string* text = reader.find_text(name, may_lack)) {
      steps.push_back({read_nothing, [&field, text = *text]() mutable { field = std::move(text); }});
    } else if constexpr (may_lack) {
      if (!reader.may_miss(name)) steps.push_back({read_nothing, [&field] { field.reset(); }});
    }
  } else if constexpr (is_kept<F>) {
    using Kept = Kept<F>;
    using N = typename Kept::Number;
    constexpr bool may_lack = requires { Kept::reset(field); };
    const auto fits = [&field](const Shape& shape) { return Kept::fits(field, shape); };
    if (const StoredTensor* tensor = reader.find<N>({name, Kept::wanted(field), fits, may_lack})) {
      const auto made = std::make_shared<std::optional<decltype(Kept::make(std::declval<Array<N>>()))>>();
      steps.push_back({[=](CheckpointReader& from) { made->emplace(Kept::make(from.read<N>(*tensor))); },
                       [=, &field] { Kept::set(field, std::move(**made)); }});
    } else if constexpr (may_lack) {
      if (!reader.may_miss(name)) steps.push_back({read_nothing, [&field] { Kept::reset(field); }});
    }
  }
}

template <class M> void load(M& model, CheckpointReader&& reader) {
  static_assert(!std::is_const_v<M>, "tapegrad: expected a model to load into, got one that is const");
  std::vector<LoadStep> steps;
  walk(model, [&](const Path& path, auto& field) { plan_load(reader, path.text(), field, steps); });
  reader.refuse_rest();
  for (const LoadStep& step : steps) step.read(reader);
  for (const LoadStep& step : steps) step.set();
}

template <class M> void gather(const M& model, CheckpointWriter& writer) {
  for_each_stored(model, [&]<class Stored>(const Path& path, Stored&& stored) {
    if constexpr (!std::is_same_v<Stored, const std::nullopt_t&>) writer.add(path.text(), std::forward<Stored>(stored));
  });
}

}  // namespace detail

/// Writes a model's fields, or a run's, to a temporary file beside `path`, syncs it to the disk and renames it: a crash
/// at any time leaves the old file or the new one, whole, and perhaps a .tapegrad-*.tmp beside it, which the next save
/// in the folder removes. Numbers keep their types; texts go beside the metadata. Throws std::runtime_error when the
/// file cannot be written, and std::invalid_argument for text that is not UTF-8, metadata under the name of a field,
/// and two fields of one name; std::logic_error for a weight held in bfloat16.
template <detail::ModelArgument M>
void save(const M& model, const std::filesystem::path& path, const Metadata& metadata = {}) {
  detail::CheckpointWriter writer;
  detail::gather(model, writer);
  writer.write(path, metadata);
}

/// The bytes of the file that save() would write, for load() from memory: of what another process, or a database, is to
/// have. Throws std::invalid_argument as save does.
template <detail::ModelArgument M> std::vector<std::byte> save_bytes(const M& model, const Metadata& metadata = {}) {
  detail::CheckpointWriter writer;
  detail::gather(model, writer);
  return writer.bytes(metadata);
}

/// Reads a model's fields, or a run's, converting between floating-point numbers of any width. The file must have what
/// the model has, in the same shapes and types, and nothing else, but for what the options name; std::vectors of
/// numbers and std::optionals take on what is there. Throws std::runtime_error naming the file and the tensor
/// otherwise, and for a file that is not a well-formed checkpoint. Whatever it throws, nothing of the model has
/// changed. The file is mapped into memory: one that another program makes shorter while it is read ends this program
/// (SIGBUS), as does a disk that cannot be read. What save() writes takes an older file's place and never does that.
template <detail::ModelArgument M>
void load(M& model, const std::filesystem::path& path, const LoadOptions& options = {}) {
  detail::load(model, detail::CheckpointReader(path, options));
}

/// The same from a file's bytes in memory, as tapegrad_embed of CMake puts them into a program.
template <detail::ModelArgument M>
void load(M& model, std::span<const std::byte> bytes, const LoadOptions& options = {}) {
  detail::load(model, detail::CheckpointReader(bytes, options));
}

/// Reads the metadata alone, with the texts among the fields. Throws std::runtime_error for a file that is not a
/// well-formed checkpoint.
Metadata load_metadata(const std::filesystem::path& path);
/// The same from a file's bytes in memory.
Metadata load_metadata(std::span<const std::byte> bytes);

}  // namespace tapegrad
