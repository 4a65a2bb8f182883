#include "internal/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace tapegrad::detail {
namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

double ratio(long long quota, long long period) {
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : kUnlimited;
}

// Both in microseconds; "max" in place of the quota is no number.
double quota_of_unified(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  long long quota, period;
  return file >> quota >> period ? ratio(quota, period) : kUnlimited;
}

// A quota of -1 is none.
double quota_of_version_1(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  long long quota, period;
  return quota_file >> quota && period_file >> period ? ratio(quota, period) : kUnlimited;
}

// Where groups of processors are mounted: version 2 has one tree for all controllers, version 1 one for this.
struct Mount {
  bool unified;
  std::string top;  // the group that is seen at the mount point: in a container it may be the container's own
  fs::path point;

  double least_quota(const std::string& group) const {
    const auto quota = unified ? quota_of_unified : quota_of_version_1;
    fs::path folder = point;
    double least = quota(folder);
    const std::string above = top == "/" ? "" : top;
    // A group that does not lie below the top cannot be seen from here: what can be seen is the top.
    if (!(group + '/').starts_with(above + '/') || group.find("/..") != group.npos) return least;
    for (const fs::path& part : fs::path(group.substr(above.size())).relative_path())
      least = std::min(least, quota(folder /= part));
    return least;
  }
};

bool lists_cpu(const std::string& words) { return (',' + words + ',').find(",cpu,") != words.npos; }

// Lines such as "31 23 0:28 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct".
std::vector<Mount> cgroup_mounts(const fs::path& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped, top, point, kind, source, options;
    words >> skipped >> skipped >> skipped >> top >> point;
    while (words >> skipped && skipped != "-") {
    }
    words >> kind >> source >> options;
    if (kind == "cgroup2" || (kind == "cgroup" && lists_cpu(options)))
      mounts.push_back({kind == "cgroup2", top, root / fs::path(point).relative_path()});
  }
  return mounts;
}

// Lines such as "0::/user.slice" of version 2 and "4:cpu,cpuacct:/user.slice" of version 1.
double least_quota(const fs::path& root) {
  const std::vector<Mount> mounts = cgroup_mounts(root);
  double least = kUnlimited;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    for (const Mount& mount : mounts)
      if (mount.unified ? controllers.empty() : lists_cpu(controllers))
        least = std::min(least, mount.least_quota(group));
  }
  return least;
}

// std::thread::hardware_concurrency() counts the processors of the machine.
std::size_t processors_of_affinity() {
  constexpr std::size_t kMostSets = 64;  // of 1,024 processors each
  for (std::size_t sets = 1; sets <= kMostSets; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    const std::size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) return static_cast<std::size_t>(CPU_COUNT_S(bytes, mask.data()));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

std::size_t processors_in_quota(const fs::path& root) {
  const double quota = least_quota(root);
  if (quota >= static_cast<double>(std::numeric_limits<int>::max())) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(std::max(1.0, std::floor(quota)));
}

std::size_t usable_processors() { return std::min(processors_of_affinity(), processors_in_quota()); }

}  // namespace tapegrad::detail
