/// Ctrl-C as a wish to stop.
#pragma once

#include <csignal>

namespace examples {

/// While it lives, Ctrl-C (SIGINT) or a SIGTERM asks the program to stop instead of ending it, so that long work can
/// finish its step and keep what it has. A second one ends it at once. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;

 private:
  struct sigaction interrupt_before_, terminate_before_;
};

}  // namespace examples
