/// Compact storage of ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

/// A sequence of ids in 1, 2 or 4 bytes each, depending on the vocabulary's size. A 100 MB text has about as many ids;
/// with a few hundred characters they take one or two bytes instead of eight.
class PackedIds {
 public:
  /// For ids below `vocabulary`.
  explicit PackedIds(std::size_t vocabulary) {
    if (vocabulary - 1 > std::numeric_limits<std::uint16_t>::max())
      ids_ = std::vector<std::uint32_t>();
    else if (vocabulary - 1 > std::numeric_limits<std::uint8_t>::max())
      ids_ = std::vector<std::uint16_t>();
  }

  /// Reserves memory for `count` ids.
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
