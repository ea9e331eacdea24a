// The machines that generated code must agree on: the interpreter, and the CPU with its own
// instructions and without its widest.
#pragma once

#include <ostream>

#include "tests/support/context.h"

namespace tiny::testing {

struct Machine {
  const char* device;
  const char* isa;  // "" and "auto": the best that is there
};
inline constexpr Machine kMachines[] = {{"interp", ""}, {"cpu", ""}, {"cpu", "avx2"}};

inline std::ostream& operator<<(std::ostream& out, const Machine& machine) {
  return out << machine.device << (*machine.isa ? " " : "") << machine.isa;
}

// Kernels are checked, and split between two threads.
inline Flags flags_on(const Machine& machine) {
  Flags flags = flags_for(machine.device, machine.isa);
  flags.spec = 1;
  flags.threads = 2;
  return flags;
}

inline Ref<Context> context_on(const Machine& machine) {
  return make_ref<Context>(flags_on(machine));
}

}  // namespace tiny::testing
