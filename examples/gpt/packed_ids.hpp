/// Ids of a text in little memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

/// A sequence of ids, each in as many bytes as the largest takes: a text of 100 MB has as many ids, and those of a few
/// hundred characters need a byte or two each instead of eight.
class PackedIds {
 public:
  /// For ids below `vocabulary`.
  explicit PackedIds(std::size_t vocabulary) {
    if (vocabulary - 1 > std::numeric_limits<std::uint16_t>::max())
      ids_ = std::vector<std::uint32_t>();
    else if (vocabulary - 1 > std::numeric_limits<std::uint8_t>::max())
      ids_ = std::vector<std::uint16_t>();
  }

  /// Makes room for so many.
  void reserve(std::size_t count) {
    std::visit([&](auto& ids) { ids.reserve(count); }, ids_);
  }

  void push_back(std::int64_t id) {
    std::visit([&]<class T>(std::vector<T>& ids) { ids.push_back(static_cast<T>(id)); }, ids_);
  }

  std::size_t size() const {
    return std::visit([](const auto& ids) { return ids.size(); }, ids_);
  }

  std::int64_t operator[](std::size_t i) const {
    return std::visit([&](const auto& ids) { return static_cast<std::int64_t>(ids[i]); }, ids_);
  }

 private:
  std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>, std::vector<std::uint32_t>> ids_;
};
