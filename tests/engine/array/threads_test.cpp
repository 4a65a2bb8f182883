/// The thread pool if the system cannot create threads, if it starts and stops thousands of times, and if the program
/// ends while it works. Cases that may crash or hang run in a child process: this program, running one of the test
/// cases skipped here.
#include "threads.hpp"

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

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
  for (const int megabytes : {400, 1000, 3000})
    check_runs("child: threads cannot be created", "ulimit -v " + std::to_string(megabytes * 1000) + "; ");
}

TEST_CASE("More threads than chunks compute the same result") {
  const Threads one(1);
  const tg::Array<double> expected = computed();
  tg::set_num_threads(200);
  CHECK(xt::allclose(computed(), expected, 1e-12, 1e-14));
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
  for (int i = 0; i < 50; ++i) check_runs("child: main returns while a thread computes");
}

TEST_CASE("Several threads compute at once while the number of threads changes") {
  const Threads restored(tg::num_threads());
  const auto x = drawn({64, 1024});
  const tg::Array<double> expected = tg::exp(x).value();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 200; ++i) {
        if (i % 10 == 0) tg::set_num_threads(1 + (t + i) % 4);
        if (tg::exp(x).value() != expected) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
