// The interpreter: runs bytecode (base/bytecode.h) without making code.  The fallback where memory
// cannot be made executable, and a second opinion for everything else.
#pragma once

#include <memory>

#include "base/kernel_abi.h"
#include "runtime/device.h"

namespace tiny {

// The instructions that the ops are executed with: the best that this processor has, or those that
// every one has.  The results are the same.
enum class BytecodeIsa : uint8_t { Best, Baseline };

// Decodes and validates once; what breaks the format is Error{Device} that names the op.
Ref<Executable> load_bytecode(const Code& code, BytecodeIsa isa = BytecodeIsa::Best);

// Runs what load_bytecode made, as one worker; allocates nothing, and may run in several threads at
// once with scratch of their own: the code's scratch_bytes, aligned to 64.
void run_bytecode(const Executable& executable, const KernelArgs& args);

// The device "interp": host memory, bytecode, one worker.
std::unique_ptr<Device> make_interpreter_device();

}  // namespace tiny
