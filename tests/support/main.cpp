/// Runs the tests. A test case fails if the number of this thread's pooled blocks in use changes. Each starts with NaN
/// in the pool's idle memory.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include "listener.hpp"
#include "poison.hpp"

namespace {

class PoolListener : public Listener {
 public:
  explicit PoolListener(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData&) override {
    poison_pool();
    before_ = tapegrad::pool_blocks_in_use();
  }

  void test_case_end(const doctest::CurrentTestCaseStats& test_case) override {
    const std::ptrdiff_t kept = tapegrad::pool_blocks_in_use() - before_;
    if (kept == 0) return;
    FAIL_CHECK("the test case ends with " << kept << " more pooled blocks in use than it began with");
    ++failed_asserts_;
    if (test_case.testCaseSuccess) ++failed_cases_;
  }

  // doctest counts a test case before reporting its end, so failures found here are added to the totals before they are
  // printed and determine the exit status.
  void test_run_end(const doctest::TestRunStats& run) override {
    auto& totals = const_cast<doctest::TestRunStats&>(run);
    totals.numTestCasesFailed += failed_cases_;
    totals.numAsserts += failed_asserts_;
    totals.numAssertsFailed += failed_asserts_;
  }

 private:
  std::ptrdiff_t before_ = 0;
  unsigned failed_cases_ = 0;
  int failed_asserts_ = 0;
};

REGISTER_LISTENER("pool", 1, PoolListener);

}  // namespace
