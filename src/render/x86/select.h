// Instruction selection: a linear program as machine instructions over virtual registers.
#pragma once

#include "render/x86/machine.h"

namespace tiny::x86 {

// The machine program of `program`; throws Error{Unsupported} that names the op.
MachineProgram select(const LinearProgram& program, bool avx512);

}  // namespace tiny::x86
