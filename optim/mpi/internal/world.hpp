/// Communication of bytes and numbers. Only this header's sources use MPI. For the library's own sources.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace tapegrad::mpi::detail {

/// This process's number and the number of processes; 0 and 1 without mpirun.
std::size_t rank();
std::size_t size();

/// Prints the message as this rank's and ends all ranks.
[[noreturn]] void end_all(const std::string& message, const std::string& program = "tapegrad");

/// An asynchronous operation of MPI. Wait for it before freeing its memory.
class Request {
 public:
  struct Parts;
  Request() = default;  ///< complete
  explicit Request(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
  Request(Request&&) = default;
  Request& operator=(Request&&) = default;

  /// Gives MPI time to progress.
  void progress();
  /// Waits for completion. Ends all ranks at the timeout, with `operation` in the message.
  void wait(const char* operation);

 private:
  std::shared_ptr<Parts> parts_;  // null: complete
};

/// `calls` for sums of gradients, concurrent with other calls: the order of their starts may differ between ranks.
enum class Overlap { none, calls };
/// Sums each number over the ranks, in place, with the same bits on all.
template <class T> Request start_sum(T* numbers, std::size_t count, Overlap overlap = Overlap::none);
/// Replaces the bytes by those of the rank `root`.
Request start_broadcast(void* bytes, std::size_t count, std::size_t root);
/// Copies the bytes of the rank `from` to the rank `to`, which is another one. Both call it; for others it does
/// nothing.
Request start_copy(void* bytes, std::size_t count, std::size_t from, std::size_t to);

}  // namespace tapegrad::mpi::detail
