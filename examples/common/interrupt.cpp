#include "interrupt.hpp"

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace examples {

namespace {

volatile std::sig_atomic_t stop_signal = 0;
volatile std::sig_atomic_t prints_notice = 0;
int alive = 0;  // number of Interrupts
constexpr std::array stopping = {SIGINT, SIGTERM, SIGHUP};

void on_signal(int signal) {  // async-signal-safe calls only
  if (stop_signal != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // delivered when this handler returns; ends the program
    return;
  }
  stop_signal = signal;
  const int reason = errno;
  constexpr std::string_view text = "\nstopping and saving the results; interrupt again to quit immediately\n";
  if (prints_notice != 0 && write(STDERR_FILENO, text.data(), text.size()) < 0) prints_notice = 0;
  errno = reason;
}

}  // namespace

Interrupt::Interrupt() {
  if (alive++ == 0) stop_signal = 0;
  prints_notice = isatty(STDERR_FILENO);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < stopping.size(); ++i) {
    sigaction(stopping[i], nullptr, &before_[i]);
    const bool outlives_terminal = stopping[i] == SIGHUP && before_[i].sa_handler == SIG_IGN;  // under nohup
    if (!outlives_terminal) sigaction(stopping[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  --alive;
  for (std::size_t i = 0; i < stopping.size(); ++i) sigaction(stopping[i], &before_[i], nullptr);
}

int Interrupt::status() const { return stop_signal == 0 ? 0 : 128 + stop_signal; }

void Interrupt::check() const {
  if (requested()) throw Stopped{};
}

void write_whole(const std::function<void()>& write) {
  {
    const Interrupt interrupt;
    if (alive == 1) prints_notice = 0;  // no notice: the write is short
    write();
  }
  if (alive == 0 && stop_signal != 0) std::raise(stop_signal);
}

}  // namespace examples
