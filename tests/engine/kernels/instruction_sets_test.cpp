#include <tapegrad/engine/kernels/instruction_sets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "stepped.hpp"

using tapegrad::detail::instruction_set;
using tapegrad::detail::instruction_sets;
using tapegrad::detail::InstructionSet;
using tapegrad::detail::run_vectorized;

TEST_CASE("The processor's best instruction set is selected unless a test selects another") {
  const std::vector<InstructionSet> sets = instruction_sets();
  CHECK(sets.front() == InstructionSet::baseline);
  CHECK(std::is_sorted(sets.begin(), sets.end()));
  CHECK(std::adjacent_find(sets.begin(), sets.end()) == sets.end());
  CHECK(instruction_set() == sets.back());
  for (const InstructionSet set : sets) {
    const UseInstructionSet use(set);
    CHECK(instruction_set() == set);
  }
  CHECK(instruction_set() == sets.back());
}

TEST_CASE_TEMPLATE("A loop gives the same result on every instruction set and visits each element once", T, float,
                   double) {
  for (const InstructionSet set : instruction_sets()) {
    CAPTURE(static_cast<int>(set));
    const UseInstructionSet use(set);
    for (const std::size_t size : kSizes) {
      CAPTURE(size);
      std::vector<T> x(size + 1, T(2));
      run_vectorized([&x, size] {
        for (std::size_t i = 0; i < size; ++i) x[i] = std::sqrt(x[i] + static_cast<T>(i)) / T(4) - x[i];
      });
      std::size_t right = 0;
      for (std::size_t i = 0; i < size; ++i)
        right += std::abs(x[i] - (std::sqrt(2.0 + static_cast<double>(i)) / 4 - 2)) < 1e-5;
      CHECK(right == size);
      CHECK(x[size] == T(2));  // memory after it is unchanged
    }
  }
}
