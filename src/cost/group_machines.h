// Machines that compute in groups of threads, as they are described: what their kernels are chosen
// for where no such device is at hand, and the rates of one that is.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cost/machine.h"

namespace tiny {

struct GroupMachine {
  std::string_view name;
  GroupLimits limits;
  int32_t processors = 0;
  int32_t compute = 0;   // what it can do beside: its compute capability, 10 * major + minor
  int64_t l2_bytes = 0;  // of the cache that all processors share
  Rates rates;
};

std::span<const GroupMachine> known_group_machines();
// Null: not known.
const GroupMachine* find_group_machine(std::string_view name);

// Makes its limits and rates those of `machine`, whatever runs it.
void imitate(const GroupMachine& described, Machine& machine);

}  // namespace tiny
