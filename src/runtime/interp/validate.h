// The check of bytecode before it is first run.
#pragma once

#include <span>
#include <string>

#include "base/bytecode.h"

namespace tiny::interp {

// Throws Error{Device} unless every op is known, its operands lie in the frame, are aligned,
// written before they are read and apart from its result, blocks nest and end as they began, and
// the last op is End.  That loads and stores stay in their buffers is the renderer's business.
void validate(const std::string& name, const BytecodeHeader& header,
              std::span<const BytecodeInstruction> code);

}  // namespace tiny::interp
