// A build without devices that compute in groups of threads knows no such machines.
#include "base/error.h"
#include "cost/group_estimate.h"
#include "cost/group_machines.h"

namespace tiny {

std::span<const GroupMachine> known_group_machines() {
  return {};
}

const GroupMachine* find_group_machine(std::string_view) {
  return nullptr;
}

void imitate(const GroupMachine&, Machine&) {
}

Estimate estimate_groups(const Kernel&, const Machine&) {
  throw_error(Status::Unsupported,
              "this build of the library has no machines that compute in groups");
}

}  // namespace tiny
