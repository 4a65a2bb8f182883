/// Communication of bytes and numbers. Only this header's sources use MPI. For the library's own sources.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tapegrad::mpi::detail {

/// Of the session; 0 and 1 without mpirun.
std::size_t rank();
std::size_t size();

/// Prints the message as this rank's and ends all ranks.
[[noreturn]] void end_all(const std::string& message);

/// An asynchronous operation of MPI. Wait for it before freeing its memory.
class Request {
 public:
  Request();
  ~Request();
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;

  /// Lets MPI work, and returns true if the operation is complete.
  bool test();
  /// Waits for completion. Ends all ranks at the timeout, with `operation` in the message.
  void wait(const char* operation);

 private:
  friend struct Start;
  struct State;
  std::unique_ptr<State> state_;  // null: none
};

/// Completes when all ranks have reached the end of the session.
Request start_end();
/// `calls` for sums of gradients, concurrent with other calls: the order of their starts may differ between ranks.
enum class Overlap { none, calls };
/// Sums each number over the ranks, in place, with the same bits on all.
template <class T> Request start_sum(T* numbers, std::size_t count, Overlap overlap = Overlap::none);
/// Replaces the bytes by those of the rank `root`.
Request start_broadcast(void* bytes, std::size_t count, std::size_t root);
/// Bytes from one rank to another; each calls its side.
Request start_send(const void* bytes, std::size_t count, std::size_t to);
Request start_receive(void* bytes, std::size_t count, std::size_t from);

}  // namespace tapegrad::mpi::detail
