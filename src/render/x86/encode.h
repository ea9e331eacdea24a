// Machine instructions with registers assigned to bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "render/x86/allocate.h"
#include "render/x86/machine.h"

namespace tiny::x86 {

// One instruction of the machine program and where its bytes begin.
struct CodeMark {
  uint32_t offset;
  uint32_t inst;
};

// The function, constants included.  `marks`, if given, gets one mark an instruction.
std::vector<std::byte> encode(MachineProgram& program, const Allocation& allocation,
                              std::vector<CodeMark>* marks = nullptr);

}  // namespace tiny::x86
