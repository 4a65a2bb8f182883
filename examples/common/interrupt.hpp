/// Stops long work gracefully on Ctrl-C.
#pragma once

#include <array>
#include <csignal>
#include <functional>

namespace examples {

/// During its lifetime SIGINT (Ctrl-C), SIGTERM and SIGHUP (terminal closed) request a stop instead of ending the
/// program, so long work can save its results. The handler prints a notice if standard error is a terminal. A second
/// signal of any of these kinds ends the program at once. Interrupts nest; a stop request reaches all of them.
class Interrupt {
 public:
  /// Thrown by check().
  struct Stopped {};

  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const { return status() != 0; }

  /// The exit status after a stop request by the shell's convention, 128 + signal; 0 without a request.
  int status() const;

  /// Throws Stopped if a stop was requested. Call it where the work can be abandoned.
  void check() const;

 private:
  std::array<struct sigaction, 3> before_;
};

/// Calls `write`, which writes files, protected from a signal. The signal takes effect after the call: it ends the
/// program or, inside another Interrupt, requests a stop. A second signal ends the program at once.
void write_whole(const std::function<void()>& write);

}  // namespace examples
