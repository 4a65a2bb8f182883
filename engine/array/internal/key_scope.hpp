/// Drawing the same random numbers again. For the library's own sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapegrad {
class Generator;
}

namespace tapegrad::detail {

/// Stands between this thread and the generators that it draws from until the end of its scope: writes down the keys
/// that they hand out, or hands out keys that were written down while the generators stay where they are. Scopes nest:
/// what an inner one does not hand out is asked of the one around it.
class KeyScope {
 public:
  using Keys = std::vector<std::uint64_t>;

  /// Writes down.
  explicit KeyScope(Keys* written) : KeyScope(written, nullptr) {}
  /// Hands out.
  explicit KeyScope(const Keys& repeated) : KeyScope(nullptr, &repeated) {}
  ~KeyScope();
  KeyScope(const KeyScope&) = delete;
  KeyScope& operator=(const KeyScope&) = delete;

  /// The next key for who asks this generator. Throws std::logic_error where all have been handed out.
  static std::uint64_t next_key(Generator& generator);

  /// Whether all keys have been handed out.
  bool is_used_up() const { return repeated_ == nullptr || next_ == repeated_->size(); }

 private:
  KeyScope(Keys* written, const Keys* repeated);
  static std::uint64_t next_key(Generator& generator, KeyScope* scope);

  KeyScope* outer_;
  Keys* written_;
  const Keys* repeated_;
  std::size_t next_ = 0;
};

}  // namespace tapegrad::detail
