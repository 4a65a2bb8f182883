/// Loops whose chunks run on one pool of threads. For the library's own sources.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace tapegrad::detail {

inline constexpr std::size_t kMaxChunks = 64;  ///< The maximum number of chunks in a loop.

/// Calls body(context, chunk) for each of 1 to kMaxChunks chunks, on the pool's threads and this one; only on this
/// thread if the pool is busy or inside another loop's body. Finally rethrows one of the bodies' exceptions.
void run_chunks(std::size_t chunks, void (*body)(void* context, std::size_t chunk), void* context);

/// Calls body(begin, end, chunk), or body(begin, end).
template <class Body> void call_with_range(Body& body, std::size_t begin, std::size_t end, std::size_t chunk) {
  if constexpr (std::is_invocable_v<Body&, std::size_t, std::size_t, std::size_t>)
    body(begin, end, chunk);
  else
    body(begin, end);
}

/// Calls body(begin, end, chunk), or body(begin, end), for ranges of nearly equal length that cover 0, ..., count - 1,
/// on several threads. There are `chunks` ranges, but at most count and kMaxChunks.
template <class Body> void parallel_for(std::size_t count, std::size_t chunks, Body body) {
  if (count == 0) return;
  chunks = std::clamp<std::size_t>(chunks, 1, std::min(count, kMaxChunks));
  auto run = [&](std::size_t chunk) {
    call_with_range(body, chunk * count / chunks, (chunk + 1) * count / chunks, chunk);
  };
  if (chunks == 1) return run(0);
  run_chunks(
      chunks, [](void* context, std::size_t chunk) { (*static_cast<decltype(run)*>(context))(chunk); }, &run);
}

/// Delays the program's end until the end of the scope, because OpenBLAS frees its buffers at exit even if a detached
/// thread still multiplies. Blocks forever if the program is ending, except on the thread that ends it.
class ExitGuard {
 public:
  ExitGuard();
  ~ExitGuard();
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

 private:
  bool counted_;  // false in a loop on the pool, which the program's end waits for anyway
};

/// The size of OpenBLAS's buffer for a thread that multiplies.
inline constexpr std::size_t kBlasBufferBytes = (std::size_t{128} << 20) + (std::size_t{64} << 10);

bool can_map(std::size_t bytes);  ///< True if this many bytes of addresses can be mapped.

std::size_t threads_here();  ///< num_threads(), but 1 in another loop's body.

/// The number of chunks for a loop of `work` elementary steps; 1 if threads do not pay. Independent of the number of
/// threads, so the results are too.
std::size_t chunks_for(std::size_t work);

}  // namespace tapegrad::detail
