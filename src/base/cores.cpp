#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "base/read_text.h"
#include "base/text.h"

namespace tiny {

namespace {

// A part of a microsecond's rounding is no processor.
constexpr double kRounding = 1e-3;

int whole(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return INT_MAX;
  const double cores = std::ceil(quota / period - kRounding);
  return cores < INT_MAX ? std::max(1, static_cast<int>(cores)) : INT_MAX;
}

double number_in(const std::string& path) {
  return std::atof(read_text(path).c_str());
}

// "max 100000", or microseconds and the period that they are of.
int quota_of_version_2(const std::string& folder) {
  const std::string limit = read_text(folder + "/cpu.max");
  const size_t space = limit.find(' ');
  if (space == std::string::npos || limit.starts_with("max")) return INT_MAX;
  return whole(std::atof(limit.c_str()), std::atof(limit.c_str() + space));
}

// -1: there is none.
int quota_of_version_1(const std::string& folder) {
  return whole(number_in(folder + "/cpu.cfs_quota_us"), number_in(folder + "/cpu.cfs_period_us"));
}

// The least of a group and all around it: in a container the group's own path may not be there.
int least_quota(const std::string& mount, std::string group, int (*quota)(const std::string&)) {
  int cores = INT_MAX;
  for (;;) {
    while (group.ends_with('/')) group.pop_back();
    cores = std::min(cores, quota(mount + group));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return cores;
    group.resize(slash);
  }
}

// Whether `name` is one of a list with commas.
bool has_name(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == name) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

int physical_cores(std::span<const int> processors, const std::string& root) {
  std::set<std::string> cores;
  for (const int cpu : processors) {
    const std::string topology = cat(root, "/sys/devices/system/cpu/cpu", cpu, "/topology/");
    const std::string siblings = read_text(topology + "thread_siblings_list");
    cores.insert(siblings.empty() ? cat("processor ", cpu) : siblings);
  }
  return static_cast<int>(cores.size());
}

int cores_by_quota(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  // What a container sees of its own group is the root of the mount.
  int cores = std::min(quota_of_version_2(mount), quota_of_version_1(mount + "/cpu"));
  // Lines "0::/group" of version 2 and "4:cpu,cpuacct:/group" of version 1.
  const std::string groups = read_text(root + "/proc/self/cgroup", size_t{64} << 10);
  std::string_view left = groups;
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers(line.substr(first + 1, second - first - 1));
    const std::string group(line.substr(second + 1));
    if (controllers.empty())
      cores = std::min(cores, least_quota(mount, group, quota_of_version_2));
    else if (has_name(controllers, "cpu"))
      for (const std::string& name : {controllers, std::string("cpu")})
        cores = std::min(cores, least_quota(cat(mount, "/", name), group, quota_of_version_1));
  }
  return cores;
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) processors.push_back(cpu);
  const int cores = processors.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                                       : physical_cores(processors, "");
  return std::max(1, std::min(cores, cores_by_quota("")));
}

}  // namespace tiny
