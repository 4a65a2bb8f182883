// Replaces world.cpp in builds without MPI: every program is a group of one.
#include <iostream>
#include <stdexcept>
#include <string_view>

#include "../../engine/array/internal/environment.hpp"
#include "../../engine/array/internal/error.hpp"
#include "internal/world.hpp"
#include "session.hpp"

namespace tapegrad::mpi {

Session::Session(int, char**, const SessionOptions&) : exceptions_(0) {
  const std::string_view ranks = tapegrad::detail::environment("OMPI_COMM_WORLD_SIZE");
  if (!ranks.empty() && ranks != "1")
    tapegrad::detail::fail<std::runtime_error>("Session",
                                               "expected a program built with MPI, got one built without it as one of ",
                                               ranks, " ranks started by mpirun; install libopenmpi-dev and rebuild");
}
Session::~Session() { static_cast<void>(exceptions_); }
void Session::fail(const std::string& program, const std::string& message) const {
  std::cerr << program << ": " << message << std::endl;
}

namespace detail {

std::size_t rank() { return 0; }
std::size_t size() { return 1; }

void Request::progress() {}
void Request::wait(const char*) {}

template <class T> Request start_sum(T*, std::size_t, Overlap) { return {}; }
template Request start_sum(float*, std::size_t, Overlap);
template Request start_sum(double*, std::size_t, Overlap);
Request start_broadcast(void*, std::size_t, std::size_t) { return {}; }
Request start_copy(void*, std::size_t, std::size_t, std::size_t) { return {}; }

}  // namespace detail
}  // namespace tapegrad::mpi
