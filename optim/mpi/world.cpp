#include "internal/world.hpp"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <limits>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../engine/array/internal/environment.hpp"
#include "../../engine/array/internal/error.hpp"
#include "../../engine/array/threads.hpp"
#include "session.hpp"

namespace tapegrad::mpi {

using detail::Request;
using tapegrad::detail::environment;
using tapegrad::detail::require;
using tapegrad::detail::require_usage;

namespace {

struct World {
  bool has_begun = false, is_alive = false;
  int rank = 0, size = 1;
  double timeout = 600;          // seconds
  MPI_Comm failures = nullptr;   // for failing ranks; the others may be in any other call
  MPI_Comm gradients = nullptr;  // for sums of gradients, concurrent with other calls
  MPI_Comm ends = nullptr;       // for ranks that end their session while others still compute
} world;

// False if the program was started on its own. MPI_Init would then start a daemon for it.
bool was_started_by_launcher() {
  for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"})
    if (!environment(variable).empty()) return true;
  return false;
}

double timeout_of(const SessionOptions& options) {
  constexpr const char* kVariable = "TAPEGRAD_MPI_TIMEOUT";
  const std::string_view text = environment(kVariable);
  double timeout = options.timeout.value_or(world.timeout);
  if (!options.timeout && !text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), timeout);
    if (error != std::errc() || end != text.data() + text.size()) timeout = 0;
  }
  require(timeout > 0, "Session", "expected a timeout above 0 seconds, got ", options.timeout ? "" : kVariable,
          options.timeout ? "" : "=", options.timeout ? std::to_string(*options.timeout) : std::string(text));
  return timeout;
}

// ---- processors -----------------------------------------------------------------------------------------------------

using Processors = std::vector<cpu_set_t>;  // a mask of any length

Processors affinity(std::size_t sets) {
  Processors mask(sets);
  if (sched_getaffinity(0, sets * sizeof(cpu_set_t), mask.data()) != 0) mask.clear();
  return mask;
}

std::size_t count(const Processors& mask) {
  return static_cast<std::size_t>(std::max(1, CPU_COUNT_S(mask.size() * sizeof(cpu_set_t), mask.data())));
}

// The number of the node's processors that this process may use, and the number it is bound to.
std::pair<std::size_t, std::size_t> processors_of_node() {
  Processors bound;
  for (std::size_t sets = 1; bound.empty() && sets <= 64; sets *= 2) bound = affinity(sets);
  if (bound.empty()) return {1, 1};
  const std::size_t bytes = bound.size() * sizeof(cpu_set_t);
  Processors all(bound.size());
  for (std::size_t i = 0; i < 8 * bytes; ++i) CPU_SET_S(i, bytes, all.data());
  // The kernel keeps only existing, allowed processors. No thread starts before the mask is restored.
  all = sched_setaffinity(0, bytes, all.data()) == 0 ? affinity(bound.size()) : bound;
  sched_setaffinity(0, bytes, bound.data());
  return {count(all), count(bound)};
}

// Sets the number of threads to this rank's share of the node's processors, but not above num_threads(), which respects
// CPU quotas.
void share_processors() {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world.rank, MPI_INFO_NULL, &node);
  int ranks = 1;
  MPI_Comm_size(node, &ranks);
  MPI_Comm_free(&node);
  const auto [all, bound] = processors_of_node();
  const std::size_t share = std::max<std::size_t>(1, all / static_cast<std::size_t>(ranks));
  if (!environment("TAPEGRAD_NUM_THREADS").empty()) return;
  set_num_threads(std::min(num_threads(), share));
  if (world.rank == 0 && bound < share)
    std::cerr << "tapegrad: each rank is bound to " << bound << " of its node's " << all << " processors but could use "
              << share << "; pass --bind-to none to mpirun" << std::endl;
}

// ---- waiting --------------------------------------------------------------------------------------------------------

using Requests = std::vector<MPI_Request>;

// True if all requests complete within the given seconds. Polls without a pause for 0.1 ms, then yields the processor
// to other ranks, and after 2 s sleeps between polls: a rank may be writing a file while the others wait.
bool complete_within(Requests& requests, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (;;) {
    int done = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done) return true;
    const double waited = std::chrono::duration<double>(Clock::now() - start).count();
    if (waited > seconds) return false;
    if (waited > 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    else if (waited > 1e-4)
      std::this_thread::yield();
  }
}

}  // namespace

// ---- requests -------------------------------------------------------------------------------------------------------

struct Request::Parts {
  Requests requests;
};

void Request::progress() {
  if (parts_ && complete_within(parts_->requests, 0)) parts_.reset();
}

void Request::wait(const char* operation) {
  if (parts_ && !complete_within(parts_->requests, world.timeout))
    detail::end_all(
        tapegrad::detail::message(operation, "expected the other ranks within ", world.timeout,
                                  " seconds, got no answer: a rank may have exited or called something else; "
                                  "TAPEGRAD_MPI_TIMEOUT=<seconds> sets the limit"));
  parts_.reset();
}

// Starts a request in parts small enough for MPI's counts, which are ints.
template <class Start> static Request in_parts(std::size_t count, Start start) {
  constexpr std::size_t kMax = std::numeric_limits<int>::max() / 2;
  if (world.size == 1 || count == 0) return {};
  const auto parts = std::make_shared<Request::Parts>();
  parts->requests.resize((count + kMax - 1) / kMax);
  for (std::size_t begin = 0; begin < count; begin += kMax)
    start(begin, static_cast<int>(std::min(kMax, count - begin)), &parts->requests[begin / kMax]);
  return Request(parts);
}

namespace detail {

template <class T> Request start_sum(T* numbers, std::size_t count, Overlap overlap) {
  const MPI_Comm ranks = overlap == Overlap::calls ? world.gradients : MPI_COMM_WORLD;
  const MPI_Datatype type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE;
  return in_parts(count, [&](std::size_t begin, int part, MPI_Request* request) {
    MPI_Iallreduce(MPI_IN_PLACE, numbers + begin, part, type, MPI_SUM, ranks, request);
  });
}
template Request start_sum(float*, std::size_t, Overlap);
template Request start_sum(double*, std::size_t, Overlap);

Request start_broadcast(void* bytes, std::size_t count, std::size_t root) {
  return in_parts(count, [&](std::size_t begin, int part, MPI_Request* request) {
    MPI_Ibcast(static_cast<std::byte*>(bytes) + begin, part, MPI_BYTE, static_cast<int>(root), MPI_COMM_WORLD, request);
  });
}

Request start_copy(void* bytes, std::size_t count, std::size_t from, std::size_t to) {
  if (rank() != from && rank() != to) return {};
  return in_parts(count, [&](std::size_t begin, int part, MPI_Request* request) {
    std::byte* const first = static_cast<std::byte*>(bytes) + begin;
    if (rank() == from)
      MPI_Isend(first, part, MPI_BYTE, static_cast<int>(to), 0, MPI_COMM_WORLD, request);
    else
      MPI_Irecv(first, part, MPI_BYTE, static_cast<int>(from), 0, MPI_COMM_WORLD, request);
  });
}

std::size_t rank() { return static_cast<std::size_t>(world.rank); }
std::size_t size() { return static_cast<std::size_t>(world.size); }

void end_all(const std::string& message, const std::string& program) {
  const std::string place = "rank " + std::to_string(world.rank) + " of " + std::to_string(world.size);
  std::cout.flush();
  std::cerr << program + ": " + place + ": " + message + '\n' << std::flush;  // at once: other ranks may print too
  if (world.is_alive) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace detail

// ---- the session ----------------------------------------------------------------------------------------------------

Session::Session(int argc, char** argv, const SessionOptions& options) : exceptions_(std::uncaught_exceptions()) {
  require_usage(!world.has_begun, "Session", "expected one Session per program, got a second one");
  world.timeout = timeout_of(options);
  if (!was_started_by_launcher()) return;
  world.has_begun = true;
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  world.is_alive = true;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  for (MPI_Comm* const ranks : {&world.failures, &world.gradients, &world.ends}) MPI_Comm_dup(MPI_COMM_WORLD, ranks);
  share_processors();
}

Session::~Session() {
  if (!world.is_alive) return;
  if (std::uncaught_exceptions() > exceptions_) {
    // The exception's handler prints its message, then the process exits and ends the other ranks.
    std::atexit([] {
      std::cout.flush();
      MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    });
    return;
  }
  // MPI_Finalize would wait without a timeout.
  in_parts(1, [](std::size_t, int, MPI_Request* request) {
    MPI_Ibarrier(world.ends, request);
  }).wait("the end of the session");
  world.is_alive = false;
  world.rank = 0;
  world.size = 1;
  MPI_Finalize();
}

void Session::fail(const std::string& program, const std::string& message) const {
  if (world.size > 1) {
    Requests request(1);
    MPI_Ibarrier(world.failures, request.data());
    if (!complete_within(request, 2)) detail::end_all(message, program);
  }
  std::cout.flush();
  if (world.rank == 0) std::cerr << program + ": " + message + '\n' << std::flush;
}

}  // namespace tapegrad::mpi
