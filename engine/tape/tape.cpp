#include "tape.hpp"

#include <cstdio>
#include <exception>

#include "internal/recording.hpp"

namespace tapegrad {
namespace detail {
namespace {

thread_local const TapeScope* innermost = nullptr;

}  // namespace

TapeScope::TapeScope(Recordings* recordings) noexcept : outer_(innermost), recordings_(recordings) { innermost = this; }

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
    if (scope->recordings_ != nullptr && scope->recordings_->id() == tape) return scope->recordings_;
  return nullptr;
}

}  // namespace detail

Tape::Tape(const TapeOptions& options)
    : recordings_(make_pooled<detail::Recordings>(options)), scope_(recordings_.get()) {}

std::size_t Tape::size() const { return recordings_->of<float>().size() + recordings_->of<double>().size(); }

}  // namespace tapegrad
