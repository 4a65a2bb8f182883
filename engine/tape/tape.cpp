#include "tape.hpp"

#include <atomic>
#include <cstdio>
#include <exception>
#include <utility>

#include "../array/internal/error.hpp"
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

static std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

detail::Recording::Recording(const TapeOptions& options)
    : number_(next_number()), options_(options), of_float_(number_, options), of_double_(number_, options) {}

void detail::Recording::begin_backward() {
  require_usage(!in_backward_, "backward",
                "expected a call outside the Tape's own backward pass, got one within it, such as from a hook; "
                "use another Tape there");
  in_backward_ = true;
}

}  // namespace tapegrad
