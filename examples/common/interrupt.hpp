/// Ctrl-C as a wish to stop.
#pragma once

#include <array>
#include <csignal>
#include <functional>

namespace examples {

/// While it lives, Ctrl-C (SIGINT), a SIGTERM, or the SIGHUP of a terminal that goes away, asks the program to stop
/// instead of ending it, so that long work can keep what it has, and says so when standard error is a terminal. A
/// second one, of any kind, ends the program at once. One may live within another, as part of work within the whole:
/// what asks the whole to stop asks the part.
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
  std::array<struct sigaction, 3> before_;
};

/// Writes files. A signal that comes meanwhile ends the program once they are whole, or asks to stop what runs under an
/// Interrupt; a second one ends it at once.
void write_whole(const std::function<void()>& write);

}  // namespace examples
