// The handlers in the instructions that every processor of the architecture has.
#include "base/half.h"
#include "runtime/interp/step.h"

namespace tiny::interp {
namespace {
#include "runtime/interp/handlers.inc"
}  // namespace

Handler find_handler_baseline(const BytecodeInstruction& instruction) {
  return choose(instruction);
}

}  // namespace tiny::interp
