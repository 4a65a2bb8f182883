/// What the system gives this process: environment variables and processors. For the library's own sources.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace tapegrad::detail {

/// The value of an environment variable; empty if it is not set.
inline std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

/// The lowest processor quota of this process's control groups, version 1 or 2, rounded down to a whole number, at
/// least 1. Without a quota, the largest number. `root` is the root of the file system, for tests.
///
/// A quota of 1.5 counts as 1: two threads would exhaust it early in each period and then be stopped.
std::size_t processors_in_quota(const std::filesystem::path& root = "/");

std::size_t usable_processors();  ///< The number of processors in the calling thread's affinity, limited by the quota.

}  // namespace tapegrad::detail
