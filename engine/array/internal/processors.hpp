/// How many processors this process may use. For the library's own sources.
#pragma once

#include <cstddef>
#include <filesystem>

namespace tapegrad::detail {

/// The whole processors in the quota of this process's control group, at least 1: the least of the quotas of its group
/// and of all groups around it, in both versions of cgroups. The largest number where there is none, or none that can
/// be read. `root` stands for the root of the file system: a test makes one of its own.
///
/// A quota of 1.5 counts as 1. Two threads would use it up after three quarters of each period, and the system then
/// stops both to its end: a step waits for tens of milliseconds, and the time that a thread spins in is taken from the
/// other's. What is left over serves the program's other threads.
std::size_t processors_in_quota(const std::filesystem::path& root = "/");

/// The processors that the calling thread may run on, as taskset and cpusets limit them, at most those in its quota.
std::size_t usable_processors();

}  // namespace tapegrad::detail
