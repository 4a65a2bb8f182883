/// The thread pool if the system cannot create threads, if it starts and stops thousands of times, and if the program
/// ends while it works. Cases that may crash or hang run in a child process: this program, running one of the test
/// cases skipped here.
#include "threads.hpp"

#include <tapegrad/tapegrad.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "run_case.hpp"
#include "sanitized.hpp"

namespace tg = tapegrad;

namespace {

tg::Tensor<double> drawn(const tg::Shape& shape) { return tg::Tensor<double>(tg::uniform<double>(shape, -1, 1)); }

// The result of many loops and a product, all large enough to be split.
tg::Array<double> computed() {
  tg::manual_seed(0);
  const auto x = drawn({300, 200}), y = drawn({200, 300});
  return tg::softmax(tg::matmul(x, y) + tg::exp(tg::transpose(y, 0, 1) * 0.1).detach().value()(0, 0), -1).value();
}

}  // namespace

TEST_CASE("child: threads cannot be created" * doctest::skip()) {
  tg::set_num_threads(1);
  const tg::Array<double> expected = computed();
  for (const std::size_t threads : {64, 400, 2}) {
    tg::set_num_threads(threads);
    CHECK(tg::num_threads() == threads);
    for (int i = 0; i < 3; ++i) REQUIRE(xt::allclose(computed(), expected, 1e-12, 1e-14));
  }
}

TEST_CASE("If threads cannot be created, the existing threads do the work" * doctest::skip(kSanitized)) {
  // Memory for one thread's product, for a few, and for all threads a loop can use but not for 400.
  for (const int megabytes : {600, 1000, 3000})
    check_runs("child: threads cannot be created", "ulimit -v " + std::to_string(megabytes * 1000) + "; ");
}

TEST_CASE("The number of threads is at least 1") {
  const Threads three(3);
  CHECK_THROWS_WITH_AS(tg::set_num_threads(0), "[set_num_threads] expected at least 1 thread, got 0",
                       std::invalid_argument);
  CHECK(tg::num_threads() == 3);
}

TEST_CASE("child: pools begin and end" * doctest::skip()) {
  const auto x = drawn({64, 1024});
  const tg::Array<double> expected = tg::exp(x).value();
  for (int i = 0; i < (kSanitized ? 500 : 5'000); ++i) {
    tg::set_num_threads(2 + static_cast<std::size_t>(i) % 3);
    if (i % 2 == 0) REQUIRE(tg::exp(x).value() == expected);
    if (i % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 200));  // its workers fall asleep
  }
}

TEST_CASE("Pools are created and destroyed many thousand times without a hang") {
  check_runs("child: pools begin and end");
}

TEST_CASE("child: main returns while a thread computes" * doctest::skip()) {
  static std::atomic<int> products{0};
  tg::set_num_threads(4);
  std::thread([] {
    const auto x = drawn({200, 150}), y = drawn({150, 200});
    for (;; ++products) tg::exp(tg::matmul(x, y));
  }).detach();
  while (products < 3) std::this_thread::yield();
}

TEST_CASE("A program may end while a detached thread computes") {
  // ThreadSanitizer waits a second at the end of each.
  for (int i = 0; i < (kSanitized ? 10 : 50); ++i) check_runs("child: main returns while a thread computes");
}

// Without matrix products, for which OpenBLAS's lock may stay locked.
TEST_CASE("child: fork while another thread computes" * doctest::skip()) {
  tg::set_num_threads(2);
  const auto x = drawn({400, 300});
  const auto values = [&] { return tg::exp(x).value(); };
  const tg::Array<double> expected = values();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) values();
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const bool same = values() == expected;
      tg::set_num_threads(3);
      std::exit(same && values() == expected ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  stop = true;
  other.join();
}

TEST_CASE("a child made by fork() computes on one thread and ends" * doctest::skip(kSanitized)) {
  check_runs("child: fork while another thread computes", "", 60);
}

namespace {

struct Trainer {
  tg::Parameter<float> w{tg::Array<float>(tg::Shape{20, 30}, 0.1F)};
  tg::SGD<float> optimizer{{&w}, {.lr = 1e-3}};

  float step() {
    tg::Tape tape;
    optimizer.zero_grad();
    tg::sum(tg::matmul(w, tg::transpose(w, 0, 1))).backward();
    optimizer.step();
    return w.value()(0, 0);
  }
  ~Trainer() {
    const float before = w.value()(0, 0);
    if (!(step() < before) || !(step() < before)) std::_Exit(3);
  }
};

}  // namespace

TEST_CASE("child: destructors take training steps" * doctest::skip()) {
  std::thread([] {  // since the pool's listener counts the blocks of this thread
    static Trainer of_program;
    of_program.step();
  })
      .join();
  for (int i = 0; i < 3; ++i)
    std::thread([] {
      thread_local Trainer of_thread;
      CHECK(of_thread.step() < 0.1F);
    }).join();
}

TEST_CASE("static and thread_local objects may train in their destructors") {
  check_runs("child: destructors take training steps");
}

TEST_CASE("child: a product without memory for a buffer" * doctest::skip()) {
  tg::set_num_threads(1);
  CHECK_THROWS_AS(tg::matmul(drawn({30, 30}), drawn({30, 30})), std::bad_alloc);
}

TEST_CASE("a product without memory for OpenBLAS's buffer throws instead of waiting forever" *
          doctest::skip(kSanitized)) {
  for (const int megabytes : {270, 290, 310})  // OpenBLAS's own threads hang at exit with less
    check_runs("child: a product without memory for a buffer", "ulimit -v " + std::to_string(megabytes * 1000) + "; ",
               20);
}

#if defined(__x86_64__)
TEST_CASE("all threads compute with the caller's flush-to-zero and rounding modes") {
  const Threads four(4);
  const auto x = drawn({64, 4096});
  const auto results = [&] {
    tg::Array<double> tiny = x.value() * 1e-308 / 1024;
    return std::pair(tg::exp(x).value(), (tg::Tensor<double>(tiny) * 0.5).value());
  };
  for (const unsigned modes : {0U, 0x8040U, 0x2000U, 0x6000U, 0U}) {  // flush to zero, round down, round toward zero
    CAPTURE(modes);
    const unsigned before = _mm_getcsr();
    _mm_setcsr((before & 0x1fbfU) | modes);
    tg::set_num_threads(1);
    const auto expected = results();
    tg::set_num_threads(4);
    int wrong = 0;
    for (int i = 0; i < 4; ++i) wrong += results() == expected ? 0 : 1;
    _mm_setcsr(before);
    CHECK(wrong == 0);
  }
}
#endif
