/// Sets the number of threads in tests.
#pragma once

#include <tapegrad/engine/array/threads.hpp>

/// Sets the number of threads until the end of the scope.
struct Threads {
  std::size_t before = tapegrad::num_threads();
  explicit Threads(std::size_t count) { tapegrad::set_num_threads(count); }
  ~Threads() { tapegrad::set_num_threads(before); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
};
