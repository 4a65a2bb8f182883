/// The number of processors that this process may use. For the library's own sources.
#pragma once

#include <cstddef>
#include <filesystem>

namespace tapegrad::detail {

/// The whole processors in the least quota of this process's control groups, version 1 or 2, at least 1; the largest
/// number if there is no quota. `root` is the root of the file system, for tests.
///
/// A quota of 1.5 counts as 1: two threads would use it up early in each period, and be stopped for the rest of it.
std::size_t processors_in_quota(const std::filesystem::path& root = "/");

/// The processors in the calling thread's affinity, at most those in the quota.
std::size_t usable_processors();

}  // namespace tapegrad::detail
