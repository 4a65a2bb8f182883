/// Loops whose chunks run on one pool of threads. For the library's own sources.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace tapegrad::detail {

/// The most chunks that a loop is cut into.
inline constexpr std::size_t kMostChunks = 64;

/// Calls body(context, chunk) for every chunk from 0 to chunks - 1, each once, on the pool's threads and this one;
/// chunks is from 1 to kMostChunks. On this thread alone when the pool is at work already, for another thread or for a
/// loop around this one. Where bodies throw, one of their exceptions arrives here when no chunk is at work any more.
void run_chunks(std::size_t chunks, void (*body)(void* context, std::size_t chunk), void* context);

/// Calls body(begin, end), or body(begin, end, chunk), for `chunks` ranges of nearly equal length that make up 0, ...,
/// count - 1; for fewer where `chunks` is more than count or kMostChunks.
template <class Body> void parallel_for(std::size_t count, std::size_t chunks, Body body) {
  if (count == 0) return;
  struct Loop {
    std::size_t count, chunks;
    Body& body;

    void run(std::size_t chunk) const {
      const std::size_t begin = chunk * count / chunks, end = (chunk + 1) * count / chunks;
      if constexpr (std::is_invocable_v<Body&, std::size_t, std::size_t, std::size_t>)
        body(begin, end, chunk);
      else
        body(begin, end);
    }
  } loop{count, std::clamp<std::size_t>(chunks, 1, std::min(count, kMostChunks)), body};
  if (loop.chunks == 1) return loop.run(0);
  run_chunks(
      loop.chunks, [](void* context, std::size_t chunk) { static_cast<Loop*>(context)->run(chunk); }, &loop);
}

/// While one lives, the end of the program waits for it: OpenBLAS frees its buffers then, also under a detached thread
/// that still multiplies. Whoever makes one after that waits until the process is gone, all but the thread that ends
/// it. Costs nothing within a loop on the pool, which the end of the program waits for anyway.
class ExitGuard {
 public:
  // The main thread is spared: it is the one that ends the program, and cannot compute meanwhile.
  ExitGuard() : counted_(!is_main_thread() && enter()) {}
  ~ExitGuard() {
    if (counted_) leave();
  }
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

 private:
  static bool is_main_thread() {
    static thread_local constinit signed char is_main = -1;  // not asked yet
    if (is_main < 0) is_main = gettid() == getpid();
    return is_main != 0;
  }
  static bool enter();
  static void leave();

  bool counted_;
};

/// How many threads a loop that begins here would get: num_threads(), but 1 within another loop's body.
std::size_t threads_here();

/// How many chunks to cut a loop into that takes `work` elementary steps in all: 1 while threads would cost more than
/// they save. It depends on the work alone, so that results do not depend on the number of threads.
std::size_t chunks_for(std::size_t work);

}  // namespace tapegrad::detail
