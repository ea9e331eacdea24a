// Instructions whose results nobody reads.
#pragma once

#include "render/x86/machine.h"

namespace tiny::x86 {

// Removes them.
void drop_dead(MachineProgram& program);

}  // namespace tiny::x86
