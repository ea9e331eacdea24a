// How many processors this process may use: those of its affinity mask, one for each physical core,
// no more than the quota of its control groups.
//
// What the system tells lies in files; `root` stands before their paths ("" is the system's own).
#pragma once

#include <span>
#include <string>

namespace tiny {

// At least 1.
int available_cores();

// Physical cores among these processors; each is one where the topology is not told.
int physical_cores(std::span<const int> processors, const std::string& root);

// Whole processors of the least quota of the process's control groups and those around them, of
// version 1 and 2, rounded up; INT_MAX without one.
int cores_by_quota(const std::string& root);

}  // namespace tiny
