// One decoded op of bytecode: a handler and where its operands are.  A handler does the op and
// returns the step to do next, null at the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytecode.h"
#include "base/kernel_abi.h"

namespace tiny::interp {

struct Step;
using Handler = const Step* (*)(const Step* step, std::byte* frame, const KernelArgs* args);

struct Step {
  Handler run = nullptr;
  uint32_t result = 0;  // frame offsets
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  int32_t lanes = 1;
  int64_t imm = 0;
  const Step* target = nullptr;  // of Loop, EndLoop, If
  int32_t aux = 0;
};

// A call by one thread of a group.
struct ThreadArgs : KernelArgs {
  std::byte* shared = nullptr;  // the group's memory
  int64_t thread[3] = {};
  mutable const Step* waits_at = nullptr;  // the Barrier, GroupFold or Mma that it has come to
};

// The handler of an instruction, or null if there is no such op on these types.  The two differ in
// the instructions that they use, not in results.
Handler find_handler_baseline(const BytecodeInstruction& instruction);
Handler find_handler_avx2(const BytecodeInstruction& instruction);  // null where not built
bool has_avx2();

}  // namespace tiny::interp
