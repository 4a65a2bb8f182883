/// The number of threads.
#pragma once

#include <cstddef>

namespace tapegrad {

/// Sets how many threads work on one operation, the calling one included; fewer if the system refuses more. Results
/// depend on it only in the rounding of large matrix products. Any thread may call it while others compute. OpenBLAS
/// itself gets one thread for the whole process. Throws std::invalid_argument for 0 and std::logic_error inside an
/// operation.
void set_num_threads(std::size_t count);

/// The number set; by default the environment variable TAPEGRAD_NUM_THREADS or, if that is empty or not set, the
/// processors this process may use, by its affinity and the quotas of its control groups. Both are read at the first
/// use. Throws std::invalid_argument, as every operation then does, if the variable is no whole number of at least 1.
std::size_t num_threads();

}  // namespace tapegrad
