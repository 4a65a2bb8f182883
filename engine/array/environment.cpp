#include "internal/environment.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <thread>

namespace tapegrad::detail {
namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// One group's quota divided by its period, both in microseconds; "max" and -1 mean none.
double quota_of(const fs::path& group, bool version_2) {
  std::ifstream file(group / (version_2 ? "cpu.max" : "cpu.cfs_quota_us")), period_file(group / "cpu.cfs_period_us");
  long long quota, period;
  const bool known = file >> quota && (version_2 ? file : period_file) >> period && quota > 0 && period > 0;
  return known ? static_cast<double>(quota) / static_cast<double>(period) : kUnlimited;
}

bool lists_cpu(const std::string& words) { return (',' + words + ',').find(",cpu,") != words.npos; }

// This process's groups of versions 2 and 1, from lines such as "0::/user.slice" and "4:cpu,cpuacct:/user.slice".
std::map<bool, std::string> groups_of_process(const fs::path& root) {
  std::map<bool, std::string> groups;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty() || lists_cpu(controllers)) groups[controllers.empty()] = line.substr(second + 1);
  }
  return groups;
}

// The lowest quota of a group and its ancestors, below a mount point that shows the group `top`, such as the
// container's own group. For a group outside of `top`, which is hidden, `top` counts.
double lowest_quota(const std::string& group, std::string top, fs::path folder, bool version_2) {
  double lowest = quota_of(folder, version_2);
  if (top == "/") top.clear();
  if (!(group + '/').starts_with(top + '/') || group.find("/..") != group.npos) return lowest;
  for (const fs::path& part : fs::path(group.substr(top.size())).relative_path())
    lowest = std::min(lowest, quota_of(folder /= part, version_2));
  return lowest;
}

// Reads mounts such as "31 23 0:28 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct".
double lowest_quota(const fs::path& root) {
  const std::map<bool, std::string> groups = groups_of_process(root);
  double lowest = kUnlimited;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, top, point, kind, source, options;
    words >> word >> word >> word >> top >> point;
    while (words >> word && word != "-") continue;
    words >> kind >> source >> options;
    const bool version_2 = kind == "cgroup2";
    if (!version_2 && !(kind == "cgroup" && lists_cpu(options))) continue;
    if (const auto group = groups.find(version_2); group != groups.end())
      lowest = std::min(lowest, lowest_quota(group->second, top, root / fs::path(point).relative_path(), version_2));
  }
  return lowest;
}

// std::thread::hardware_concurrency() counts the machine's processors.
std::size_t processors_of_affinity() {
  std::array<cpu_set_t, 64> mask{};  // of 1,024 processors each
  if (sched_getaffinity(0, sizeof mask, mask.data()) == 0)
    return static_cast<std::size_t>(CPU_COUNT_S(sizeof mask, mask.data()));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

std::size_t processors_in_quota(const fs::path& root) {
  const double quota = lowest_quota(root);
  if (quota >= static_cast<double>(std::numeric_limits<int>::max())) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(std::max(1.0, std::floor(quota)));
}

std::size_t usable_processors() { return std::min(processors_of_affinity(), processors_in_quota()); }

}  // namespace tapegrad::detail
