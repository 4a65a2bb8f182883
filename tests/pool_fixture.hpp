/// For test cases that must give back all they take: TEST_CASE_FIXTURE(PoolLeftAsFound, "...").
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cstddef>

/// Fails a test case after which more or fewer of this thread's pooled blocks are in use than before it.
class PoolLeftAsFound {
 public:
  PoolLeftAsFound() = default;
  PoolLeftAsFound(const PoolLeftAsFound&) = delete;
  PoolLeftAsFound& operator=(const PoolLeftAsFound&) = delete;
  ~PoolLeftAsFound() { CHECK(tapegrad::pool_blocks_in_use() == blocks_before_); }

 private:
  std::ptrdiff_t blocks_before_ = tapegrad::pool_blocks_in_use();
};
