/// Ctrl-C as a wish to stop.
#pragma once

#include <csignal>

namespace examples {

/// While it lives, Ctrl-C (SIGINT) or a SIGTERM asks the program to stop instead of ending it, so that long work can
/// keep what it has, and says so when standard error is a terminal. A second one, of either kind, ends the program at
/// once. One may live within another, as part of work within the whole: what asks the whole to stop asks the part.
class Interrupt {
 public:
  /// Thrown by check().
  struct Stopped {};

  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const { return status() != 0; }

  /// The exit status of a program that a signal has stopped, as shells give it, 128 and the signal; 0 without one.
  int status() const;

  /// Throws Stopped once a signal has asked to stop: for the places where the work may be left.
  void check() const;

 private:
  struct sigaction interrupt_before_, terminate_before_;
};

}  // namespace examples
