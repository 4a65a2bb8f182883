/// Runs the tests on all ranks of a session, or in one process. Rank 0 prints as usual, the others only failures, with
/// their rank before each line. A test case that fails on one of several ranks, or keeps pooled blocks, ends them all:
/// the others may be waiting for it. Each case starts with NaN in the pool's idle memory.
#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // a failed rank ends the others with one, and they have not failed
#include <tapegrad/mpi.hpp>
#include <tapegrad/optim/mpi/internal/world.hpp>
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <iostream>
#include <ostream>
#include <streambuf>
#include <string>

#include "../support/listener.hpp"
#include "../support/poison.hpp"

namespace {

/// Prints each line to std::cout behind a label.
class Labelled : public std::streambuf {
 public:
  explicit Labelled(std::string label) : label_(std::move(label)), line_(label_) {}

 private:
  int overflow(int character) override {
    line_ += static_cast<char>(character);
    if (character == '\n') {
      std::cout << line_ << std::flush;
      line_ = label_;
    }
    return character;
  }

  std::string label_, line_;
};

class TestCases : public Listener {
 public:
  explicit TestCases(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData& test_case) override {
    name_ = test_case.m_name;
    poison_pool();
    blocks_ = tapegrad::pool_blocks_in_use();
  }

  void test_case_end(const doctest::CurrentTestCaseStats& test_case) override {
    const std::ptrdiff_t kept = tapegrad::pool_blocks_in_use() - blocks_;
    if (!test_case.testCaseSuccess && tapegrad::mpi::detail::size() > 1)
      tapegrad::mpi::detail::end_all("the test case fails: " + name_);
    if (test_case.testCaseSuccess && kept != 0)
      tapegrad::mpi::detail::end_all("the test case ends with " + std::to_string(kept) +
                                     " more pooled blocks in use than it began with: " + name_);
  }

 private:
  std::string name_;
  std::ptrdiff_t blocks_ = 0;
};

REGISTER_LISTENER("test_cases", 1, TestCases);

}  // namespace

int main(int argc, char** argv) {
  const tapegrad::mpi::Session session(argc, argv);
  const tapegrad::mpi::Group world;
  doctest::Context context(argc, argv);
  Labelled labelled("[rank " + std::to_string(world.rank()) + "] ");
  std::ostream labelled_out(&labelled);
  context.setOption("no-colors", true);  // mpirun's pipes look like terminals
  if (world.rank() > 0) {
    context.setOption("minimal", true);
    context.setCout(&labelled_out);
  }
  return context.run();
}
