// How many processors a process may use, as the files of the system tell.
#include "base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace tiny {
namespace {

namespace fs = std::filesystem;

class Cores : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = folder_.string() + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int by_quota() const { return cores_by_quota(folder_.string()); }

  testing::TemporaryFolder folder_;
};

TEST_F(Cores, WithoutAQuotaThereIsNoBound) {
  EXPECT_EQ(by_quota(), INT_MAX) << "no files";
  write("/proc/self/cgroup", "0::/user.slice\n");
  write("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(by_quota(), INT_MAX);
  write("/proc/self/cgroup", "4:cpu,cpuacct:/a\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(by_quota(), INT_MAX);
}

TEST_F(Cores, TheLeastQuotaOfEnclosingGroupsCounts) {
  write("/proc/self/cgroup", "0::/pod/box/task\n");
  write("/sys/fs/cgroup/pod/box/task/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/pod/box/cpu.max", "300000 100000\n");
  EXPECT_EQ(by_quota(), 3);
  write("/sys/fs/cgroup/pod/cpu.max", "100000 50000\n");
  EXPECT_EQ(by_quota(), 2);
  write("/sys/fs/cgroup/pod/box/task/cpu.max", "800000 100000\n");
  EXPECT_EQ(by_quota(), 2);
}

TEST_F(Cores, AContainersOwnGroupIsTheRootOfTheMount) {
  write("/proc/self/cgroup", "0::/seen/from/outside\n");
  write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(by_quota(), 2);
}

TEST_F(Cores, PartsOfAProcessorCountAsOne) {
  write("/proc/self/cgroup", "0::/\n");
  for (const auto& [quota, cores] :
       {std::pair("50000", 1), std::pair("1", 1), std::pair("100000", 1), std::pair("150000", 2),
        std::pair("200000", 2), std::pair("200001", 2)}) {
    write("/sys/fs/cgroup/cpu.max", std::string(quota) + " 100000\n");
    EXPECT_EQ(by_quota(), cores) << quota;
  }
}

TEST_F(Cores, TheFirstVersionsGroupsHaveFilesOfTheirOwn) {
  write("/proc/self/cgroup", "9:name=systemd:/x\n2:cpuacct:/other\n1:cpu:/jobs/one\n0::/\n");
  write("/sys/fs/cgroup/cpu/jobs/one/cpu.cfs_quota_us", "400000\n");
  write("/sys/fs/cgroup/cpu/jobs/one/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(by_quota(), 4);
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(by_quota(), 3);
  write("/proc/self/cgroup", "4:cpu,cpuacct:/a\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(by_quota(), 1) << "also where no link says cpu";
}

TEST_F(Cores, WhatIsNoNumberIsNoQuota) {
  write("/proc/self/cgroup", "no group\n::\n0::\n:cpu:/\n");
  write("/sys/fs/cgroup/cpu.max", "many 100000\n");
  EXPECT_EQ(by_quota(), INT_MAX);
  write("/sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_EQ(by_quota(), INT_MAX);
  write("/sys/fs/cgroup/cpu.max", "1e300 1\n");
  EXPECT_EQ(by_quota(), INT_MAX);
}

TEST_F(Cores, TwoThreadsOfACoreAreOne) {
  for (int cpu = 0; cpu < 4; ++cpu)
    write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          cpu % 2 ? "1,3\n" : "0,2\n");
  const std::string root = folder_.string();
  const int all[] = {0, 1, 2, 3}, even[] = {0, 2}, odd_and_even[] = {2, 3}, unknown[] = {7, 9};
  EXPECT_EQ(physical_cores(all, root), 2);
  EXPECT_EQ(physical_cores(even, root), 1);
  EXPECT_EQ(physical_cores(odd_and_even, root), 2);
  EXPECT_EQ(physical_cores(unknown, root), 2) << "whose topology is not told";
}

TEST_F(Cores, TheAffinityMaskBoundsThem) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), CPU_COUNT(&before));
  int cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace tiny
