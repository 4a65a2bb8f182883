/// How many threads work on one operation.
#pragma once

#include <cstddef>

namespace tapegrad {

/// Sets how many threads work on one operation, the calling one included. Where the system gives fewer, those that
/// there are do the work. Results do not depend on it, but for the rounding of large matrix products. The pool stands
/// in for the BLAS library's threads: the first operation sets OpenBLAS to one thread for the whole process. Any thread
/// may call it while others compute. Throws std::invalid_argument for 0 and std::logic_error inside an operation.
void set_num_threads(std::size_t count);

/// The number set. When none was, that of the environment variable TAPEGRAD_NUM_THREADS, or without one as many as
/// there are processors for this process: those that it may run on (taskset, cpusets), and no more than the whole ones
/// in the quotas of its control groups, at least 1. Both are read once, at the first use. Throws std::invalid_argument,
/// as every operation does then, where the variable is no whole number of at least 1; an empty one counts as not set.
std::size_t num_threads();

}  // namespace tapegrad
