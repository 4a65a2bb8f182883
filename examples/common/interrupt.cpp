#include "interrupt.hpp"

namespace examples {

namespace {
volatile std::sig_atomic_t stop_requested = 0;
}

Interrupt::Interrupt() {
  stop_requested = 0;
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_requested = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;  // reset: the second signal does what it always did
  sigaction(SIGINT, &action, &interrupt_before_);
  sigaction(SIGTERM, &action, &terminate_before_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
}

bool Interrupt::requested() const { return stop_requested != 0; }

}  // namespace examples
