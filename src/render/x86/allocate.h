// Register allocation: a linear scan over one interval for each virtual register.
//
// Where registers run out, the interval that is cheapest for its length goes to the stack frame
// (or, a constant, is made again or read from the pool), the program is rewritten with short
// intervals around each use, and the scan starts over.  A result takes the register of an operand
// that ends there, so that most copies and two-operand forms cost nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "render/x86/machine.h"

namespace tiny::x86 {

struct Allocation {
  std::vector<int8_t> reg;  // of each virtual register, by the processor's number; -1: unused
  uint32_t int_used = 0;    // bit r: integer register r is written
  bool vec_used = false;
};

// Assigns registers; adds spill code and stack slots to `program` as needed.
Allocation allocate(MachineProgram& program);

}  // namespace tiny::x86
