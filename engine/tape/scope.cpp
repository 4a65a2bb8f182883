#include "scope.hpp"

#include <cstdio>
#include <exception>

namespace tapegrad {
namespace detail {
namespace {

thread_local const TapeScope* innermost = nullptr;

}  // namespace

TapeScope::TapeScope(Recordings* recordings, std::uint64_t tape) noexcept
    : outer_(innermost), recordings_(recordings), tape_(tape) {
  innermost = this;
}

TapeScope::~TapeScope() {
  if (innermost == this) {  // nearly always; tapes on the heap may end in any order
    innermost = outer_;
    return;
  }
  const TapeScope* inner = innermost;
  while (inner != nullptr && inner->outer_ != this) inner = inner->outer_;
  if (inner == nullptr) {  // to go on would leave another thread's chain with a link to freed memory
    std::fputs("[Tape] expected to be destroyed on the thread that made it, given another thread\n", stderr);
    std::terminate();
  }
  inner->outer_ = outer_;
}

Recordings* TapeScope::current() noexcept { return innermost == nullptr ? nullptr : innermost->recordings_; }

Recordings* TapeScope::find(std::uint64_t tape) noexcept {
  for (const TapeScope* scope = innermost; scope != nullptr; scope = scope->outer_)
    if (scope->recordings_ != nullptr && scope->tape_ == tape) return scope->recordings_;
  return nullptr;
}

}  // namespace detail

}  // namespace tapegrad
