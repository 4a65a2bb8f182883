#include "threads.hpp"

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "internal/error.hpp"
#include "internal/parallel.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tapegrad {
namespace {

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Loops of a training step follow each other within microseconds: a worker looks for the next one for a while before it
// sleeps, since waking it takes as long as many a loop.
constexpr int kSpins = 2000;

class ThreadPool {
 public:
  explicit ThreadPool(std::size_t threads) {
    for (std::size_t i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  }

  ~ThreadPool() {
    stopping_ = true;
    announce();
    for (std::thread& worker : workers_) worker.join();
  }

  std::size_t threads() const { return workers_.size() + 1; }

  void run(std::size_t chunks, void (*body)(void*, std::size_t), void* context) {
    body_ = body;
    context_ = context;
    chunks_.store(chunks, std::memory_order_relaxed);
    unfinished_.store(chunks, std::memory_order_relaxed);
    unclaimed_.store(~std::uint64_t{0} >> (detail::kMostChunks - chunks), std::memory_order_release);
    announce();
    while (work_on_one(0)) {
    }
    for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins)
      spins < kSpins ? relax() : std::this_thread::yield();
  }

 private:
  void announce() {
    loops_.fetch_add(1, std::memory_order_release);
    loops_.notify_all();
  }

  // Claims a chunk and works on it; false when none is left. Every thread begins at a place of its own and takes over
  // the others' when its share is done: in loop after loop over the same rows it finds its part in its own cache.
  // Whoever holds a chunk keeps the loop from ending, so body_ and context_ stay as they are while they are used.
  bool work_on_one(std::size_t thread) {
    std::uint64_t left = unclaimed_.load(std::memory_order_acquire);
    std::size_t chunk;
    do {
      if (left == 0) return false;
      const std::size_t first = thread * chunks_.load(std::memory_order_relaxed) / threads();
      const auto places_on = std::countr_zero(std::rotr(left, static_cast<int>(first)));
      chunk = (first + static_cast<std::size_t>(places_on)) % detail::kMostChunks;
    } while (!unclaimed_.compare_exchange_weak(left, left & ~(std::uint64_t{1} << chunk), std::memory_order_acq_rel));
    body_(context_, chunk);
    unfinished_.fetch_sub(1, std::memory_order_acq_rel);
    return true;
  }

  void work(std::size_t thread);

  void (*body_)(void*, std::size_t) = nullptr;
  void* context_ = nullptr;
  std::atomic<std::size_t> chunks_{0}, unfinished_{0};  // of the loop under way
  std::atomic<std::uint64_t> unclaimed_{0};             // a bit for each of its chunks
  std::atomic<std::uint32_t> loops_{0};                 // counts loops, for workers to wait on
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

thread_local bool inside_loop = false;  // this thread works on a chunk: loops within it are its own

void ThreadPool::work(std::size_t thread) {
  inside_loop = true;
  while (!stopping_) {
    const std::uint32_t seen = loops_.load(std::memory_order_acquire);
    while (work_on_one(thread)) {
    }
    for (int spins = 0; spins < kSpins && loops_.load(std::memory_order_acquire) == seen; ++spins) relax();
    loops_.wait(seen);
  }
}

std::mutex pool_in_use;  // held while a loop runs, and while the pool changes
std::unique_ptr<ThreadPool> pool;

std::size_t processors() { return std::max(1u, std::thread::hardware_concurrency()); }
std::atomic<std::size_t> wanted_threads{0};  // 0: not asked for, as many as there are processors

}  // namespace

void set_num_threads(std::size_t count) {
  detail::require(count > 0, "set_num_threads", "expected at least 1 thread, given 0");
  detail::require_usage(!inside_loop, "set_num_threads", "expected to be called outside an operation");
  const std::lock_guard lock(pool_in_use);
  wanted_threads = count;
  pool.reset();
}

std::size_t num_threads() {
  const std::size_t wanted = wanted_threads.load(std::memory_order_relaxed);
  static const std::size_t all = processors();
  return wanted == 0 ? all : wanted;
}

namespace detail {

void run_chunks(std::size_t chunks, void (*body)(void*, std::size_t), void* context) {
  std::unique_lock lock(pool_in_use, std::defer_lock);
  if (threads_here() == 1 || !lock.try_lock()) {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) body(context, chunk);
    return;
  }
  if (!pool) pool = std::make_unique<ThreadPool>(num_threads());
  inside_loop = true;
  pool->run(chunks, body, context);
  inside_loop = false;
}

std::size_t threads_here() { return inside_loop ? 1 : num_threads(); }

std::size_t chunks_for(std::size_t work) {
  constexpr std::size_t kWorthAThread = 16384;  // some ten microseconds: a few times what it takes to hand a chunk over
  constexpr std::size_t kMost = 16;             // more than there are threads, so that a late one does not hold up all
  return std::clamp<std::size_t>(work / kWorthAThread, 1, kMost);
}

}  // namespace detail
}  // namespace tapegrad
