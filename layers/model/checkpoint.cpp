#include "checkpoint.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "internal/atomic_file.hpp"
#include "internal/safetensors.hpp"
#include "internal/tensor_file.hpp"

namespace tapegrad {
namespace detail {

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  name.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (std::size_t skipped = 0; skipped <= name.size(); ++skipped)
    if (matches(pattern, name.substr(skipped))) return true;
  return false;
}

// ---- writing -------------------------------------------------------------------------------------------------------

struct CheckpointWriter::State {
  struct Entry {
    Dtype dtype;
    Shape shape;
    const void* data;
    std::uint64_t size;                 // in bytes
    std::shared_ptr<const void> owner;  // owner of the data; null if a field owns it
  };
  std::map<std::string, Entry> entries;
  Metadata texts;

  void require_new(const std::string& name) const {
    require(!entries.contains(name) && !texts.contains(name), "save", "expected each name once, got ", quoted(name),
            " twice");
  }

  /// The file's parts.
  struct File {
    std::string begin;  // the header's length in 8 bytes, then the header
    std::vector<std::span<const std::byte>> arrays;
    std::uint64_t size;  // of all parts
  };

  File assemble() const {
    std::vector<const std::pair<const std::string, Entry>*> in_order;
    for (const auto& named : entries) in_order.push_back(&named);
    std::ranges::stable_sort(in_order, std::ranges::greater(),  // wide numbers first, so all are aligned
                             [](const auto* named) { return info_of(named->second.dtype).size; });

    SafetensorsHeader header;
    header.metadata = texts;
    File file{};
    std::uint64_t end = 0;  // of the arrays so far
    for (const auto* named : in_order) {
      const Entry& entry = named->second;
      header.tensors[named->first] = {entry.dtype, entry.shape, end, end + entry.size};
      end += entry.size;
      file.arrays.emplace_back(static_cast<const std::byte*>(entry.data), entry.size);
    }
    const std::string text = header.format();
    const std::uint64_t length = text.size();
    file.begin = std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
    file.size = file.begin.size() + end;
    return file;
  }
};

CheckpointWriter::CheckpointWriter() : state_(std::make_unique<State>()) {}
CheckpointWriter::~CheckpointWriter() = default;

template <class N>
void CheckpointWriter::add(std::string name, const Array<N>& array, std::shared_ptr<const void> owner) {
  require(name != kMetadata, "save", "expected names of arrays other than ", quoted(kMetadata),
          ", which the file format reserves");
  state_->require_new(name);
  state_->entries[std::move(name)] = {dtype_of<N>(), array.shape(), array.data(), array.size() * sizeof(N),
                                      std::move(owner)};
}

void CheckpointWriter::add(std::string name, const std::string& text) {
  state_->require_new(name);
  state_->texts[std::move(name)] = text;
}

void CheckpointWriter::write(const std::filesystem::path& path) {
  const auto [begin, arrays, size] = state_->assemble();
  AtomicFile file("save", path);
  file.write(begin.data(), begin.size());
  for (const auto& array : arrays) file.write(array.data(), array.size());
  file.commit();
}

std::vector<std::byte> CheckpointWriter::bytes() {
  const auto [begin, arrays, size] = state_->assemble();
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  const auto first = std::as_bytes(std::span(begin));
  bytes.insert(bytes.end(), first.begin(), first.end());
  for (const auto& array : arrays) bytes.insert(bytes.end(), array.begin(), array.end());
  return bytes;
}

// ---- reading -------------------------------------------------------------------------------------------------------

static bool match_one(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(pattern, name); });
}

struct CheckpointReader::State {
  struct Tensor : StoredTensor {
    std::string name;  // in the file
    bool is_taken = false;
  };
  struct Text {
    std::string text;
    bool is_ambiguous = false, is_taken = false;  // ambiguous: two entries were renamed to this name
  };

  TensorFile file;
  LoadOptions options;
  std::unordered_map<std::string, Tensor> tensors;  // by the model's names
  std::map<std::string, Text> texts;

  template <class Source> State(const Source& source, const LoadOptions& given) : file("load", source), options(given) {
    for (const auto& [name, tensor] : file.tensors())
      if (name.starts_with(options.prefix)) add_parts(to_model(name), Tensor{tensor, name});
    for (const auto& [name, text] : file.metadata()) {
      if (!name.starts_with(options.prefix)) continue;
      const auto [place, is_new] = texts.try_emplace(to_model(name), Text{text});
      place->second.is_ambiguous = !is_new;
    }
  }

  void add(std::string to, const Tensor& tensor) {
    const auto [place, is_new] = tensors.try_emplace(std::move(to), tensor);
    if (!is_new)
      file.refuse("expected each name once after renaming, got ", quoted(place->second.name), " and ",
                  quoted(tensor.name), " for ", quoted(place->first));
  }

  void add_parts(std::string to, const Tensor& tensor) {
    const auto is_end = [&](const auto& split) { return to.ends_with(split.first); };
    const auto split = std::ranges::find_if(options.split, is_end);
    if (split == options.split.end()) return add(std::move(to), tensor);
    const auto& [end, ends] = *split;
    const std::size_t rows = tensor.shape.empty() ? 0 : tensor.shape[0];
    if (ends.empty() || rows % ends.size() != 0 || tensor.shape.empty())
      file.refuse("expected ", quoted(tensor.name), " with an axis 0 divisible by ", ends.size(), " to split, got ",
                  to_string(tensor.shape));
    const std::string begin = to.substr(0, to.size() - end.size());
    Tensor part = tensor;
    part.shape[0] /= ends.size();
    const std::uint64_t size = (tensor.end - tensor.begin) / ends.size();
    for (const std::string& of_part : ends) {
      part.end = part.begin + size;
      add(begin + of_part, part);
      part.begin = part.end;
    }
  }

  // Advice for a missing tensor that the file has under another prefix, the shortest of them. None if names matched
  // before: then the prefix is right.
  std::string suggested_prefix(const Wanted& wanted) {
    if (options.rename || std::ranges::any_of(tensors, [](const auto& named) { return named.second.is_taken; }))
      return "";
    const std::string* found = nullptr;
    for (const auto& [name, tensor] : file.tensors()) {
      const bool is_wanted = name == wanted.name || name.ends_with('.' + wanted.name);
      const bool is_shorter = !found || std::pair(name.size(), name) < std::pair(found->size(), *found);
      if (is_wanted && is_shorter && wanted.fits(tensor.shape)) found = &name;
    }
    if (!found) return "";
    return "; use .prefix = " + quoted(found->substr(0, found->size() - wanted.name.size())) + " for " + quoted(*found);
  }

  std::string to_model(const std::string& name) const {
    std::string rest = name.substr(options.prefix.size());
    return options.rename ? options.rename(std::move(rest)) : rest;
  }
};

CheckpointReader::CheckpointReader(const std::filesystem::path& path, const LoadOptions& options)
    : state_(std::make_unique<State>(path, options)) {}
CheckpointReader::CheckpointReader(std::span<const std::byte> bytes, const LoadOptions& options)
    : state_(std::make_unique<State>(bytes, options)) {}
CheckpointReader::~CheckpointReader() = default;

bool CheckpointReader::is_optional(const std::string& name) const {
  return match_one(state_->options.allow_missing, name);
}

template <class N> const StoredTensor* CheckpointReader::find(const Wanted& wanted) {
  const auto place = state_->tensors.find(wanted.name);
  const auto refuse = [&](const auto&... parts) {
    state_->file.refuse("expected ", state_->options.prefix, wanted.name, parts...);
  };
  if (place == state_->tensors.end()) {
    if (!wanted.optional && !is_optional(wanted.name))
      refuse(' ', wanted.shape, ", got no such tensor", state_->suggested_prefix(wanted));
    return nullptr;
  }
  State::Tensor& tensor = place->second;
  const bool is_renamed = tensor.name != state_->options.prefix + wanted.name;
  const std::string source = is_renamed ? " from " + detail::quoted(tensor.name) : "";
  if (!wanted.fits(tensor.shape)) refuse(' ', wanted.shape, ", got ", to_string(tensor.shape), source);
  if (!reads_as<N>(tensor.dtype))
    refuse(" of dtype ", info_of(dtype_of<N>()).name, ", got ", info_of(tensor.dtype).name, source);
  if (std::exchange(tensor.is_taken, true)) refuse(" once in the model, got two fields of that name");
  return &tensor;
}

const std::string* CheckpointReader::find_text(const std::string& name, bool optional) {
  const auto place = state_->texts.find(name);
  const auto refuse = [&](const char* given) {
    state_->file.refuse("expected ", state_->options.prefix, name, " as text in the metadata, got ", given);
  };
  if (place == state_->texts.end()) {
    if (!optional && !is_optional(name)) refuse("no such text");
    return nullptr;
  }
  State::Text& found = place->second;
  if (found.is_ambiguous) refuse("two texts after renaming");
  if (std::exchange(found.is_taken, true)) refuse("two fields of that name");
  return &found.text;
}

void CheckpointReader::refuse_rest() const {
  const std::pair<const std::string, State::Tensor>* first = nullptr;  // by name
  for (const auto& named : state_->tensors)
    if (!named.second.is_taken && !match_one(state_->options.ignore, named.first) &&
        (first == nullptr || named.first < first->first))
      first = &named;
  if (first != nullptr)
    state_->file.refuse("expected only tensors of the model, got ", quoted(first->second.name), " of shape ",
                        to_string(first->second.shape));
}

template <class N> Array<N> CheckpointReader::read(const StoredTensor& tensor) {
  return state_->file.read<N>(static_cast<const State::Tensor&>(tensor).name, tensor);
}

#define INSTANTIATE(N)                                                                               \
  template void CheckpointWriter::add<N>(std::string, const Array<N>&, std::shared_ptr<const void>); \
  template const StoredTensor* CheckpointReader::find<N>(const Wanted&);                             \
  template Array<N> CheckpointReader::read<N>(const StoredTensor&);
TAPEGRAD_EACH_NUMBER(INSTANTIATE)

}  // namespace detail

void save_text(const std::string& text, const std::filesystem::path& path) {
  detail::replace_file("save_text", path, text);
}

Metadata load_metadata(const std::filesystem::path& path) {
  return std::move(detail::TensorFile("load_metadata", path).metadata());
}

Metadata load_metadata(std::span<const std::byte> bytes) {
  return std::move(detail::TensorFile("load_metadata", bytes).metadata());
}

}  // namespace tapegrad
