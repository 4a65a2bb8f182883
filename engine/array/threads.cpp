#include "threads.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "internal/environment.hpp"
#include "internal/error.hpp"
#include "internal/parallel.hpp"
#include "internal/processors.hpp"

namespace tapegrad {
namespace {

// Tells the processor that this thread waits in a loop.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Loops of a training step follow each other within microseconds: a worker spins for a while before it
// sleeps, since waking it takes as long as many a loop.
constexpr int kSpins = 2000;

// Addresses kept free for what a thread will ask for: OpenBLAS takes 128 MB for each, and where it gets none it asks
// again for ever. Nothing is written there, so that it takes no memory.
class Room {
 public:
  Room() : place_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (place_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Room() { munmap(place_, kBytes); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

 private:
  static constexpr std::size_t kBytes = std::size_t{192} << 20;
  void* place_;
};

class ThreadPool {
 public:
  // With as many threads as a loop can have chunks at most, and as the system gives: it may allow this user no more, or
  // have no memory for another one's stack and its work.
  explicit ThreadPool(std::size_t threads) {
    threads = std::min(threads, detail::kMostChunks);
    std::list<Room> rooms;  // of all threads at once, this one included
    try {
      workers_.reserve(threads);
      rooms.emplace_back();
      for (std::size_t i = 1; i < threads; ++i) {
        rooms.emplace_back();
        workers_.emplace_back([this, i] { work(i); });
      }
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
  }

  ~ThreadPool() {
    stopping_.store(true, std::memory_order_relaxed);
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
    if (!has_failed_.exchange(false, std::memory_order_relaxed)) return;
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  void announce() {
    announced_.fetch_add(1, std::memory_order_release);
    announced_.notify_all();
  }

  // Claims a chunk and works on it; false when none is left. Every thread begins at a place of its own and, its share
  // done, steals the others' work: in loop after loop over the same rows it finds its part in its own cache.
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
    try {
      body_(context_, chunk);
    } catch (...) {
      if (!has_failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
    }
    unfinished_.fetch_sub(1, std::memory_order_acq_rel);
    return true;
  }

  void work(std::size_t thread);

  void (*body_)(void*, std::size_t) = nullptr;
  void* context_ = nullptr;
  std::atomic<std::size_t> chunks_{0}, unfinished_{0};  // of the loop under way
  std::atomic<std::uint64_t> unclaimed_{0};             // a bit for each of its chunks
  std::atomic<bool> has_failed_{false};
  std::exception_ptr failure_;  // of the chunk that failed first; written before that chunk counts as finished
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> announced_{0};  // counts loops, and the end, for workers to wait on
  std::vector<std::thread> workers_;
};

thread_local bool ends_program = false;  // this thread runs the functions at exit

// Where a thread computes. A loop within a loop runs on the thread that it begins on, whether the pool was free for the
// loop around it or not: who else computes changes no result.
enum class Where { outside_loops, in_loop_alone, in_loop_on_pool };
thread_local Where where = Where::outside_loops;

// This thread works on chunks, to the end of the scope.
class InLoop {
 public:
  explicit InLoop(Where inside) : before_(std::exchange(where, inside)) {}
  ~InLoop() { where = before_; }
  InLoop(const InLoop&) = delete;
  InLoop& operator=(const InLoop&) = delete;

 private:
  Where before_;
};

// The count is read before anything that is announced by it. What was announced before the reading is seen after it: a
// loop's chunks and stopping_ are written first, then the count, which releases them. What is announced later changes
// the count, so that this thread does not wait. In another order the end may come between the two readings, be missed
// by the first and counted by the second.
void ThreadPool::work(std::size_t thread) {
  where = Where::in_loop_on_pool;
  while (true) {
    const std::uint32_t seen = announced_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    while (work_on_one(thread)) {
    }
    for (int spins = 0; spins < kSpins && announced_.load(std::memory_order_acquire) == seen; ++spins) relax();
    announced_.wait(seen, std::memory_order_acquire);
  }
}

// As many as TAPEGRAD_NUM_THREADS says, or as there are processors for this process.
std::size_t default_threads() {
  const std::string_view given = detail::environment("TAPEGRAD_NUM_THREADS");
  if (given.empty()) return detail::usable_processors();
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), count);
  detail::require(error == std::errc() && end == given.data() + given.size() && count > 0, "num_threads",
                  "expected TAPEGRAD_NUM_THREADS to be a whole number of at least 1, got ", given);
  return count;
}

std::atomic<std::size_t> wanted_threads{0};  // 0: not asked for, the default

// The pool that all operations share. Threads may go on computing while main returns and objects with static storage
// are destroyed, so this is never destroyed itself: the end of the program closes it when the loop and the products
// under way have ended, and loops that begin later run on the thread that asks for them.
class SharedPool {
 public:
  static SharedPool& instance() {
    static SharedPool& shared = *new SharedPool;
    return shared;
  }

  // Runs the loop on the pool's threads; false when they are at work for another one, or the program ends.
  bool run(std::size_t chunks, void (*body)(void*, std::size_t), void* context) {
    const std::unique_lock lock(in_use_, std::try_to_lock);
    if (!lock || closed_) return false;
    if (!pool_) pool_.reset(new (std::nothrow) ThreadPool(num_threads()));
    if (!pool_) return false;
    const InLoop on_pool(Where::in_loop_on_pool);
    pool_->run(chunks, body, context);
    return true;
  }

  // Another pool is made for the next loop.
  void set_threads(std::size_t count) {
    const std::lock_guard lock(in_use_);
    wanted_threads = count;
    pool_.reset();
  }

  // Either this sees that the pool is closed, or close() sees that there is one more: both write before they read.
  void enter() {
    guards_.fetch_add(1);
    if (!closed_ || ends_program) return;
    guards_.fetch_sub(1);
    closed_.wait(true);  // it stays closed
  }
  void leave() { guards_.fetch_sub(1); }

 private:
  SharedPool() {
    std::atexit([] { instance().close(); });
  }

  void close() {
    ends_program = true;
    const std::lock_guard lock(in_use_);
    closed_ = true;
    while (guards_ > 0) std::this_thread::yield();
    pool_.reset();
  }

  std::mutex in_use_;  // held while a loop runs, and while the pool changes
  std::unique_ptr<ThreadPool> pool_;
  std::atomic<bool> closed_{false};
  std::atomic<std::size_t> guards_{0};  // what the end of the program waits for
};

}  // namespace

void set_num_threads(std::size_t count) {
  detail::require(count > 0, "set_num_threads", "expected at least 1 thread, got 0");
  detail::require_usage(where == Where::outside_loops, "set_num_threads", "expected to be called outside an operation");
  SharedPool::instance().set_threads(count);
}

std::size_t num_threads() {
  const std::size_t wanted = wanted_threads.load(std::memory_order_relaxed);
  if (wanted != 0) return wanted;
  static const std::size_t by_default = default_threads();
  return by_default;
}

namespace detail {

bool ExitGuard::enter() {
  if (where == Where::in_loop_on_pool) return false;
  SharedPool::instance().enter();
  return true;
}
void ExitGuard::leave() { SharedPool::instance().leave(); }

void run_chunks(std::size_t chunks, void (*body)(void*, std::size_t), void* context) {
  if (threads_here() > 1 && SharedPool::instance().run(chunks, body, context)) return;
  const InLoop alone(where == Where::in_loop_on_pool ? where : Where::in_loop_alone);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) body(context, chunk);
}

std::size_t threads_here() { return where == Where::outside_loops ? num_threads() : 1; }

std::size_t chunks_for(std::size_t work) {
  constexpr std::size_t kWorthAThread = 16384;  // some ten microseconds: a few times what it takes to hand a chunk over
  constexpr std::size_t kMost = 16;             // more than there are threads, so that a late one does not hold up all
  return std::clamp<std::size_t>(work / kWorthAThread, 1, kMost);
}

}  // namespace detail
}  // namespace tapegrad
