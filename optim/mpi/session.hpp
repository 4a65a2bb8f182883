/// Starting and ending a program with several processes.
#pragma once

#include <optional>
#include <string>

namespace tapegrad::mpi {

/// Options of a Session.
struct SessionOptions {
  /// Seconds a rank waits for the others before it ends all with a message. By default from the environment variable
  /// TAPEGRAD_MPI_TIMEOUT, or 600.
  std::optional<double> timeout{};
};

/// Uses MPI until the end of its scope, if mpirun or a batch system started the program as several ranks. Otherwise
/// does nothing and leaves MPI uninitialized.
///
///     int main(int argc, char** argv) {
///       const tg::mpi::Session session(argc, argv);
///       const tg::mpi::Group world;
///       ...
///
/// Each rank uses its share of its node's processors (set_num_threads), unless TAPEGRAD_NUM_THREADS is set. If mpirun
/// bound it to fewer, its default, rank 0 prints a hint with the right option on standard error. Only the session's
/// thread may use this namespace.
///
/// If an exception leaves the session, the rank ends the others when its process ends, after the catcher has printed
/// the exception; call fail() to print it yourself. A rank waiting too long for the others names the call and ends all.
class Session {
 public:
  /// Throws std::logic_error after another session of several ranks, and std::invalid_argument unless the timeout, here
  /// or in the environment, is positive.
  Session(int argc, char** argv, const SessionOptions& options = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Waits until all ranks end their sessions.
  ~Session();

  /// Prints an error on standard error: `program: message`. An error of all ranks, such as a missing file, is printed
  /// once, and the program may end in its own way. An error of one rank, unmatched for two seconds, is printed with the
  /// rank's number and ends all ranks.
  void fail(const std::string& program, const std::string& message) const;

 private:
  int exceptions_;  // in flight at construction
};

}  // namespace tapegrad::mpi
