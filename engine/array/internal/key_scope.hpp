/// Repeating random numbers. For the library's own sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../random.hpp"

namespace tapegrad::detail {

/// During its lifetime, records the keys drawn from this thread's generators, or replays recorded keys without
/// advancing the generators. Scopes nest: a recording scope draws from the enclosing one.
class KeyScope {
 public:
  using Keys = std::vector<std::uint64_t>;

  explicit KeyScope(Keys* written) : KeyScope(written, nullptr) {}
  explicit KeyScope(const Keys& repeated) : KeyScope(nullptr, &repeated) {}
  ~KeyScope();
  KeyScope(const KeyScope&) = delete;
  KeyScope& operator=(const KeyScope&) = delete;

  /// The next key: drawn from the generator, or replayed. Throws std::logic_error if all recorded keys were replayed.
  static std::uint64_t next_key(Generator& generator, KeyScope* scope);

  bool is_used_up() const { return repeated_ == nullptr || next_ == repeated_->size(); }

 private:
  KeyScope(Keys* written, const Keys* repeated);

  KeyScope* outer_;
  Keys* written_;
  const Keys* repeated_;
  std::size_t next_ = 0;
};

}  // namespace tapegrad::detail
