/// How many threads work on one operation.
#pragma once

#include <cstddef>

namespace tapegrad {

/// Sets how many threads work on one operation, the calling one included; by default one for each processor. Where the
/// system gives fewer, those that there are do the work. Results do not depend on it, but for the rounding of large
/// matrix products. The pool stands in for the BLAS library's threads: the first operation sets OpenBLAS to one thread
/// for the whole process. Throws std::invalid_argument for 0 and std::logic_error inside an operation.
void set_num_threads(std::size_t count);
/// The number set, or that of the processors.
std::size_t num_threads();

}  // namespace tapegrad
