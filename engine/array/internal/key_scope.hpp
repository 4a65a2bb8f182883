/// Drawing the same random numbers again. For the library's own sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../random.hpp"

namespace tapegrad::detail {

/// Until the end of its scope, writes down the keys that this thread's generators hand out, or hands out written keys
/// while the generators stay where they are. Scopes nest: one that writes asks the scope around it.
class KeyScope {
 public:
  using Keys = std::vector<std::uint64_t>;

  explicit KeyScope(Keys* written) : KeyScope(written, nullptr) {}
  explicit KeyScope(const Keys& repeated) : KeyScope(nullptr, &repeated) {}
  ~KeyScope();
  KeyScope(const KeyScope&) = delete;
  KeyScope& operator=(const KeyScope&) = delete;

  /// The generator's next key, as the scope says. Throws std::logic_error if all written keys have been handed out.
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
