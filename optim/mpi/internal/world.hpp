/// What the ranks say to each other, in bytes and numbers: MPI stands behind this header alone. For the library's own
/// sources.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tapegrad::mpi::detail {

/// Of the session; a single rank outside one that mpirun has started.
std::size_t rank();
std::size_t size();

/// Ends all ranks: prints the message as this rank's, and never returns.
[[noreturn]] void end_all(const std::string& message);

/// Something that MPI does behind our back, on memory that must stay. It is to be waited for: memory that MPI may still
/// write to must not be given back.
class Request {
 public:
  Request();
  ~Request();
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;

  /// Gives MPI the processor, and says whether it is done.
  bool test();
  /// Returns when it is done. Ends all ranks when the others do not come: `operation` is what they are waited for in.
  void wait(const char* operation);

 private:
  friend struct Start;
  struct State;
  std::unique_ptr<State> state_;  // null: nothing under way
};

/// Done when all ranks are at the end of the session.
Request start_end();
/// Sums of gradients go on beside what the ranks call meanwhile; which of them begins first differs from rank to rank.
enum class Beside { nothing, calls };
/// Adds up each number over the ranks, in place. All ranks get the same bits.
template <class T> Request start_sum(T* numbers, std::size_t count, Beside beside = Beside::nothing);
/// Replaces the bytes by those of the rank `root`.
Request start_broadcast(void* bytes, std::size_t count, std::size_t root);
/// Bytes from one rank to another, which calls the one and the other.
Request start_send(const void* bytes, std::size_t count, std::size_t to);
Request start_receive(void* bytes, std::size_t count, std::size_t from);

}  // namespace tapegrad::mpi::detail
