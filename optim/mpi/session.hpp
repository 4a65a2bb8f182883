/// The beginning and the end of a program that runs as several processes.
#pragma once

#include <optional>
#include <string>

namespace tapegrad::mpi {

/// How a program behaves among others.
struct SessionOptions {
  /// How many seconds a rank waits for the others before it ends them all with a message. Where it is not given, as
  /// many as the environment variable TAPEGRAD_MPI_TIMEOUT says, or 600.
  std::optional<double> timeout{};
};

/// MPI from here to the end of the scope, in a program that mpirun (or a batch system) has started as several ranks; in
/// any other it does nothing, and MPI is not even begun.
///
///     int main(int argc, char** argv) {
///       const tg::mpi::Session session(argc, argv);
///       const tg::mpi::Group world;
///       ...
///
/// Each rank works with its share of its node's processors (set_num_threads), unless TAPEGRAD_NUM_THREADS says
/// otherwise. Where mpirun has bound it to fewer, as it does by default, rank 0 says so on standard error, and which
/// option gives it all. Only the thread that made the session calls what is in this namespace.
///
/// A rank that an exception takes out of the session ends the others when its process ends, after whoever catches the
/// exception has said what it was; a program that says it itself calls fail(). One that waits too long for the others
/// says for what, and ends them all.
class Session {
 public:
  /// Throws std::logic_error when there is a session of several ranks, or was one, and std::invalid_argument for a
  /// timeout, given here or in the environment, that is not above 0.
  Session(int argc, char** argv, const SessionOptions& options = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Waits for the other ranks to come here, too.
  ~Session();

  /// Prints on standard error why this rank cannot go on: `program: message`. What all ranks fail by, as a file that is
  /// not there, is printed once, and the program may end in its own way. A rank that fails alone says which it is and
  /// ends the others, and itself, after two seconds in which none has followed.
  void fail(const std::string& program, const std::string& message) const;

 private:
  int exceptions_;  // under way when it began
};

}  // namespace tapegrad::mpi
