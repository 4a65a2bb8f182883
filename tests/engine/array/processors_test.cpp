/// The number of processors available to a process: from its control groups' files, in a folder serving as file system
/// root, and from its affinity.
#include <tapegrad/engine/array/internal/environment.hpp>
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <sched.h>

#include <limits>
#include <thread>

#include "temporary_folder.hpp"

namespace fs = std::filesystem;
using tapegrad::detail::processors_in_quota;

namespace {

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

// A file system with these contents of /proc/self/cgroup and /proc/self/mountinfo.
struct Root {
  TemporaryFolder folder;

  Root(const std::string& groups, const std::string& mounts) {
    write("proc/self/cgroup", groups);
    write("proc/self/mountinfo", mounts);
  }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((folder / path).parent_path());
    folder.write(path, text);
  }

  void set_version_1(const std::string& group, const std::string& quota, const std::string& period = "100000\n") {
    write("sys/fs/cgroup/cpu,cpuacct/" + group + "cpu.cfs_quota_us", quota);
    write("sys/fs/cgroup/cpu,cpuacct/" + group + "cpu.cfs_period_us", period);
  }

  std::size_t processors() const { return processors_in_quota(folder / "."); }
};

Root of_version_2(const std::string& group, const std::string& top = "/") {
  return Root("0::" + group + "\n",
              "23 1 254:0 / / rw,relatime - ext4 /dev/root rw\n"
              "30 23 0:26 " +
                  top + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
}

Root of_version_1(const std::string& group) {
  return Root("12:cpuset:/elsewhere\n4:cpuacct,cpu:" + group + "\n1:name=systemd:/\n",
              "31 23 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
              "32 31 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 master:2 - cgroup cgroup rw,cpu,cpuacct\n"
              "33 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
}

}  // namespace

TEST_CASE("The quota of a control group of version 2 is rounded to whole processors, at least one") {
  Root root = of_version_2("/group");
  CHECK(root.processors() == kAny);  // no file yet
  const auto with = [&](const std::string& text) {
    root.write("sys/fs/cgroup/group/cpu.max", text);
    return root.processors();
  };
  CHECK(with("max 100000\n") == kAny);
  CHECK(with("300000 100000\n") == 3);
  CHECK(with("30000 10000\n") == 3);
  CHECK(with("299999 100000\n") == 2);
  CHECK(with("150000 100000\n") == 1);
  CHECK(with("1000 100000\n") == 1);
  CHECK(with("9000000000000 1000\n") == kAny);
  for (const char* garbage : {"", "\n", "100000", "words of text", "200000 max", "-200000 100000", "0 100000",
                              "200000 0", "99999999999999999999999 1"}) {
    CAPTURE(garbage);
    CHECK(with(garbage) == kAny);
  }
}

TEST_CASE("The smallest quota of a control group and its ancestors applies") {
  Root root = of_version_2("/a/b/c");
  root.write("sys/fs/cgroup/a/cpu.max", "400000 100000\n");
  CHECK(root.processors() == 4);
  root.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/a/b/c/cpu.max", "600000 100000\n");
  CHECK(root.processors() == 4);
  root.write("sys/fs/cgroup/a/b/c/cpu.max", "200000 100000\n");
  CHECK(root.processors() == 2);
  root.write("sys/fs/cgroup/a/b/other/cpu.max", "100000 100000\n");
  CHECK(root.processors() == 2);
}

TEST_CASE("In a container the mount shows the process's own group or an ancestor") {
  Root outer = of_version_2("/docker/12ab/job", "/docker/12ab");
  outer.write("sys/fs/cgroup/cpu.max", "500000 100000\n");
  CHECK(outer.processors() == 5);
  outer.write("sys/fs/cgroup/job/cpu.max", "300000 100000\n");
  CHECK(outer.processors() == 3);

  for (const char* hidden : {"/elsewhere", "/docker/12abc", "/docker/12ab/../other", "/../other"}) {
    CAPTURE(hidden);
    Root root = of_version_2(hidden, "/docker/12ab");
    root.write("sys/fs/cgroup/cpu.max", "500000 100000\n");
    root.write("sys/fs/cgroup/other/cpu.max", "100000 100000\n");
    root.write("sys/fs/cgroup/c/cpu.max", "100000 100000\n");
    CHECK(root.processors() == 5);
  }
}

TEST_CASE("The quota of a control group of version 1 is in two files, with -1 for no limit") {
  Root root = of_version_1("/user/me");
  CHECK(root.processors() == kAny);
  root.set_version_1("", "-1\n");
  root.set_version_1("user/", "800000\n");
  root.set_version_1("user/me/", "-1\n");
  CHECK(root.processors() == 8);
  root.set_version_1("user/me/", "150000\n", "50000\n");
  CHECK(root.processors() == 3);
  root.set_version_1("user/me/", "250000\n", "garbage\n");
  CHECK(root.processors() == 8);
  root.write("sys/fs/cgroup/cpuset/elsewhere/cpu.cfs_quota_us", "100000\n");  // not the CPU controller
  root.write("sys/fs/cgroup/cpuset/elsewhere/cpu.cfs_period_us", "100000\n");
  CHECK(root.processors() == 8);
}

TEST_CASE("If both versions of control groups are mounted, both apply") {
  Root root = of_version_1("/one");
  root.write("proc/self/cgroup", root.folder.read("proc/self/cgroup") + "0::/two\n");
  root.write("proc/self/mountinfo", root.folder.read("proc/self/mountinfo") +
                                        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  root.set_version_1("one/", "300000\n");
  CHECK(root.processors() == 3);
  root.write("sys/fs/cgroup/unified/two/cpu.max", "200000 100000\n");
  CHECK(root.processors() == 2);
}

TEST_CASE("Missing or malformed system files impose no limit") {
  Root nothing("", "");
  CHECK(nothing.processors() == kAny);
  nothing.write("proc/self/cgroup", "0::/\n\n:\nno colons\n0:\n");
  CHECK(nothing.processors() == kAny);
  nothing.write("proc/self/mountinfo", "\n-\n1 2 3\n - cgroup2\n1 2 0:3 / /sys - cgroup2\n1 2 0:3 / /a - cgroup\n");
  CHECK(nothing.processors() == kAny);
  nothing.write("sys/cpu.max", "200000 100000\n");
  CHECK(nothing.processors() == 2);
}

TEST_CASE("A thread's processors are those of its affinity") {
  std::size_t one = 0, all = 0;
  std::thread([&] {  // its affinity ends with the thread
    all = tapegrad::detail::usable_processors();
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(sched_getcpu(), &first);
    REQUIRE(sched_setaffinity(0, sizeof first, &first) == 0);
    one = tapegrad::detail::usable_processors();
  })
      .join();
  CHECK(one == 1);
  CHECK(all >= 1);
  CHECK(all <= std::thread::hardware_concurrency());
}
