#include "threads.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "internal/environment.hpp"
#include "internal/error.hpp"
#include "internal/parallel.hpp"

namespace tapegrad {
namespace {

// A thread's position. A loop inside another runs on its caller's thread even if the pool was busy for the outer one:
// results do not depend on the other threads.
enum class Where { outside_loops, in_serial_loop, in_pool_loop };
thread_local Where where = Where::outside_loops;

// Marks this thread as working on chunks until the end of the scope.
class InLoop {
 public:
  explicit InLoop(Where inside) : before_(std::exchange(where, inside)) {}
  ~InLoop() { where = before_; }
  InLoop(const InLoop&) = delete;
  InLoop& operator=(const InLoop&) = delete;

 private:
  Where before_;
};

// A hint to the processor in a waiting loop, and the thread's rounding and flush-to-zero modes, where known.
#if defined(__x86_64__)
void relax() { __builtin_ia32_pause(); }
using FloatModes = unsigned;
FloatModes float_modes() { return _mm_getcsr() & ~0x3fU; }  // without the sticky flags of past exceptions
void set_float_modes(FloatModes modes) {
  if (float_modes() != modes) _mm_setcsr(modes);
}
#else
void relax() {}
using FloatModes = int;
FloatModes float_modes() { return 0; }
void set_float_modes(FloatModes) {}
#endif

// Workers spin before they sleep: a training step's loops are microseconds apart, and waking takes longer.
constexpr int kSpins = 2000;

std::atomic<std::size_t> wanted_threads{0};  // 0 for the default

// True on the main thread and on the thread that runs the functions at exit: neither may wait for the process's end.
thread_local bool ends_program = gettid() == getpid();

// The pool shared by all operations. Never destroyed, since detached threads may compute after main returns: at exit it
// waits for the loop and the products in progress and closes; later loops run on their caller's thread.
class ThreadPool {
 public:
  static ThreadPool& instance() {
    static ThreadPool& shared = *new ThreadPool;
    return shared;
  }

  // Runs the loop on the pool's threads; false if the pool is busy or closed.
  bool run(std::size_t chunks, void (*body)(void*, std::size_t), void* context) {
    const std::unique_lock lock(in_use_, std::try_to_lock);
    if (!lock || closed_) return false;
    if (!has_started_) start();
    body_ = body;
    context_ = context;
    modes_ = float_modes();
    chunks_ = unfinished_ = chunks;
    unclaimed_ = ~std::uint64_t{0} >> (detail::kMaxChunks - chunks);
    announce();
    const InLoop on_pool(Where::in_pool_loop);
    work_on_chunks(0);
    for (int spins = 0; unfinished_ != 0; ++spins) spins < kSpins ? relax() : std::this_thread::yield();
    if (has_failed_.exchange(false)) std::rethrow_exception(std::exchange(failure_, nullptr));
    return true;
  }

  void set_threads(std::size_t count) {
    wanted_threads = count;
    if (is_forked()) return;
    const std::lock_guard lock(in_use_);
    stop();
  }

  // Increments before it checks, while close() closes before it checks: one of the two sees the other.
  void enter_product() {
    ++products_;
    if (!closed_) return;
    --products_;
    closed_.wait(true);  // blocks forever: the process is ending
  }
  void leave_product() { --products_; }

 private:
  ThreadPool() {
    std::atexit([] { instance().close(); });
  }

  // After fork() the workers do not exist, and the lock may never be released: loops run on their caller's thread.
  bool is_forked() const { return getpid() != process_; }

  // Starts fewer threads if the system refuses more, or address space for them, the caller and one of OpenBLAS.
  void start() {
    constexpr std::size_t kBytes = detail::kBlasBufferBytes + (std::size_t{64} << 20);  // with stack and heap
    has_started_ = true;
    const std::size_t threads = is_forked() ? 1 : std::min(num_threads(), detail::kMaxChunks);
    try {
      workers_.reserve(threads);
      for (std::size_t i = 1; i < threads && detail::can_map((i + 2) * kBytes); ++i)
        workers_.emplace_back([this, i] { work(i); });
    } catch (const std::exception&) {  // std::system_error or std::bad_alloc
    }
  }

  void stop() {
    stopping_ = true;
    announce();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    stopping_ = has_started_ = false;
  }

  void close() {
    ends_program = true;
    if (is_forked()) return;
    const std::lock_guard lock(in_use_);
    closed_ = true;
    while (products_ > 0) std::this_thread::yield();
    stop();
  }

  void announce() {
    ++announced_;
    announced_.notify_all();
  }

  // Claims and runs chunks until none is left. Each thread starts at its own share, then steals: successive loops over
  // the same rows find them in the same cache. While a chunk is claimed, body_, context_ and modes_ do not change.
  void work_on_chunks(std::size_t thread) {
    for (std::uint64_t left = unclaimed_; left != 0;) {
      const auto first = static_cast<int>(thread * chunks_ / (workers_.size() + 1));
      const std::size_t chunk =
          static_cast<std::size_t>(first + std::countr_zero(std::rotr(left, first))) % detail::kMaxChunks;
      if (!unclaimed_.compare_exchange_weak(left, left & ~(std::uint64_t{1} << chunk))) continue;
      set_float_modes(modes_);
      try {
        body_(context_, chunk);
      } catch (...) {
        if (!has_failed_.exchange(true)) failure_ = std::current_exception();
      }
      --unfinished_;
      left = unclaimed_;
    }
  }

  // Reads the count before the rest: later announcements change it, so the wait misses neither a loop nor the end.
  void work(std::size_t thread) {
    where = Where::in_pool_loop;
    while (true) {
      const std::uint32_t seen = announced_;
      if (stopping_) return;
      work_on_chunks(thread);
      for (int spins = 0; spins < kSpins && announced_ == seen; ++spins) relax();
      announced_.wait(seen);
    }
  }

  const pid_t process_ = getpid();
  std::mutex in_use_;  // locked while a loop runs, and while the workers change
  std::vector<std::thread> workers_;
  bool has_started_ = false;
  std::atomic<bool> stopping_{false}, closed_{false};
  std::atomic<std::size_t> products_{0};
  alignas(64) std::atomic<std::uint32_t> announced_{0};  // counts loops and stops

  // The current loop, in a cache line of its own, like the count.
  alignas(64) void (*body_)(void*, std::size_t) = nullptr;
  void* context_ = nullptr;
  FloatModes modes_{};  // of the caller
  std::atomic<std::size_t> chunks_{0}, unfinished_{0};
  std::atomic<std::uint64_t> unclaimed_{0};  // one bit per chunk
  std::atomic<bool> has_failed_{false};
  std::exception_ptr failure_;  // of the first chunk that failed
};

// ---- the processors of this process --------------------------------------------------------------------------------

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// One group's quota divided by its period, both in microseconds; "max" and -1 mean none.
double quota_of(const fs::path& group, bool version_2) {
  std::ifstream file(group / (version_2 ? "cpu.max" : "cpu.cfs_quota_us")), period_file(group / "cpu.cfs_period_us");
  long long quota, period;
  const bool known = file >> quota && (version_2 ? file : period_file) >> period && quota > 0 && period > 0;
  return known ? static_cast<double>(quota) / static_cast<double>(period) : kUnlimited;
}

bool lists_cpu(const std::string& words) { return (',' + words + ',').find(",cpu,") != words.npos; }

// This process's groups of versions 2 and 1, from lines such as "0::/user.slice" and "4:cpu,cpuacct:/user.slice".
std::map<bool, std::string> groups_of_process(const fs::path& root) {
  std::map<bool, std::string> groups;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty() || lists_cpu(controllers)) groups[controllers.empty()] = line.substr(second + 1);
  }
  return groups;
}

// The lowest quota of a group and its ancestors, below a mount point that shows the group `top`, such as the
// container's own group. For a group outside of `top`, which is hidden, `top` counts.
double lowest_quota(const std::string& group, std::string top, fs::path folder, bool version_2) {
  double lowest = quota_of(folder, version_2);
  if (top == "/") top.clear();
  if (!(group + '/').starts_with(top + '/') || group.find("/..") != group.npos) return lowest;
  for (const fs::path& part : fs::path(group.substr(top.size())).relative_path())
    lowest = std::min(lowest, quota_of(folder /= part, version_2));
  return lowest;
}

// Reads mounts such as "31 23 0:28 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct".
double lowest_quota(const fs::path& root) {
  const std::map<bool, std::string> groups = groups_of_process(root);
  double lowest = kUnlimited;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, top, point, kind, source, options;
    words >> word >> word >> word >> top >> point;
    while (words >> word && word != "-") continue;
    words >> kind >> source >> options;
    const bool version_2 = kind == "cgroup2";
    if (!version_2 && !(kind == "cgroup" && lists_cpu(options))) continue;
    if (const auto group = groups.find(version_2); group != groups.end())
      lowest = std::min(lowest, lowest_quota(group->second, top, root / fs::path(point).relative_path(), version_2));
  }
  return lowest;
}

// std::thread::hardware_concurrency() counts the machine's processors.
std::size_t processors_of_affinity() {
  std::array<cpu_set_t, 64> mask{};  // of 1,024 processors each
  if (sched_getaffinity(0, sizeof mask, mask.data()) == 0)
    return static_cast<std::size_t>(CPU_COUNT_S(sizeof mask, mask.data()));
  return std::max(1u, std::thread::hardware_concurrency());
}

std::size_t default_threads() {
  const std::string_view given = detail::environment("TAPEGRAD_NUM_THREADS");
  if (given.empty()) return detail::usable_processors();
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), count);
  detail::require(error == std::errc() && end == given.data() + given.size() && count > 0, "num_threads",
                  "expected TAPEGRAD_NUM_THREADS to be a whole number of at least 1, got ", given);
  return count;
}

}  // namespace

void set_num_threads(std::size_t count) {
  detail::require(count > 0, "set_num_threads", "expected at least 1 thread, got 0");
  detail::require_usage(
      where == Where::outside_loops, "set_num_threads",
      "expected a call outside of operations, got one within a parallel loop; call it between operations");
  ThreadPool::instance().set_threads(count);
}

std::size_t num_threads() {
  if (const std::size_t wanted = wanted_threads; wanted != 0) return wanted;
  static const std::size_t by_default = default_threads();
  return by_default;
}

namespace detail {

bool can_map(std::size_t bytes) {
  void* const block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return block != MAP_FAILED && munmap(block, bytes) == 0;
}

ExitGuard::ExitGuard() : counted_(!ends_program && where != Where::in_pool_loop) {
  if (counted_) ThreadPool::instance().enter_product();
}
ExitGuard::~ExitGuard() {
  if (counted_) ThreadPool::instance().leave_product();
}

void run_chunks(std::size_t chunks, void (*body)(void*, std::size_t), void* context) {
  if (threads_here() > 1 && ThreadPool::instance().run(chunks, body, context)) return;
  const InLoop alone(where == Where::in_pool_loop ? where : Where::in_serial_loop);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) body(context, chunk);
}

std::size_t processors_in_quota(const fs::path& root) {
  const double quota = lowest_quota(root);
  if (quota >= static_cast<double>(std::numeric_limits<int>::max())) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(std::max(1.0, std::floor(quota)));
}

std::size_t usable_processors() { return std::min(processors_of_affinity(), processors_in_quota()); }

std::size_t threads_here() { return where == Where::outside_loops ? num_threads() : 1; }

std::size_t chunks_for(std::size_t work) {
  constexpr std::size_t kWorthAThread = 16384;  // about ten microseconds, a few times the cost of dispatching a chunk
  constexpr std::size_t kMax = 16;              // more than threads, so a late one delays little
  return std::clamp<std::size_t>(work / kWorthAThread, 1, kMax);
}

}  // namespace detail
}  // namespace tapegrad
