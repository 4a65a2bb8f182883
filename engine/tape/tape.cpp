#include "tape.hpp"

#include <cstdio>
#include <exception>
#include <utility>

#include "internal/recording.hpp"

namespace tapegrad {

static thread_local const Tape* innermost = nullptr;

Tape::Tape(const TapeOptions& options) : Tape(detail::make_pooled<detail::Recording>(options)) {}

Tape::Tape(std::shared_ptr<detail::Recording> recording) noexcept
    : outer_(innermost), recording_(std::move(recording)) {
  innermost = this;
}

Tape::~Tape() {
  const Tape** link = &innermost;  // tapes on the heap may end in any order
  while (*link != nullptr && *link != this) link = &(*link)->outer_;
  if (*link == nullptr) {  // another thread's list of tapes would keep a pointer to freed memory
    std::fputs("[Tape] expected destruction on the thread that created it, got another thread\n", stderr);
    std::terminate();
  }
  *link = outer_;
}

detail::Recording* Tape::current() noexcept { return innermost == nullptr ? nullptr : innermost->recording_.get(); }

detail::Recording* Tape::with_number(std::uint64_t number) noexcept {
  for (const Tape* tape = innermost; tape != nullptr; tape = tape->outer_)
    if (tape->recording_ && tape->recording_->number() == number) return tape->recording_.get();
  return nullptr;
}

std::size_t Tape::size() const { return recording_->of<float>().size() + recording_->of<double>().size(); }

}  // namespace tapegrad
