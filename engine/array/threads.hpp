/// The number of threads.
#pragma once

#include <cstddef>

namespace tapegrad {

/// Sets the number of threads per operation, including the calling one: at most 64 for matrix products, 16 for other
/// loops, and fewer if the system refuses more. Affects results only by the rounding of large matrix products.
/// Thread-safe. OpenBLAS itself gets one thread for the whole process. Throws std::invalid_argument for 0 and
/// std::logic_error inside an operation.
void set_num_threads(std::size_t count);

/// The configured number of threads; by default TAPEGRAD_NUM_THREADS in the environment or, if it is empty or not set,
/// the processors available by this process's affinity and the quotas of its control groups, read at the first use.
/// Throws std::invalid_argument, as every operation then does, if the variable is not a whole number of at least 1.
std::size_t num_threads();

}  // namespace tapegrad
