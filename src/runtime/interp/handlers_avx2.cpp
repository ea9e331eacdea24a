// The handlers in AVX2 and FMA, for x86-64 processors that have them; left out where the build says
// that the baseline ones do.
#include "base/half.h"
#include "runtime/cpu/cpuid.h"
#include "runtime/interp/step.h"

#if defined(__x86_64__) && !defined(TINY_BASELINE_HANDLERS)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

namespace tiny::interp {
namespace {
#include "runtime/interp/handlers.inc"
}  // namespace
}  // namespace tiny::interp

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace tiny::interp {

Handler find_handler_avx2(const BytecodeInstruction& instruction) {
  return choose(instruction);
}

bool has_avx2() {
  static const bool has = detect_isa() != CpuIsa::None;
  return has;
}

}  // namespace tiny::interp

#else

namespace tiny::interp {

Handler find_handler_avx2(const BytecodeInstruction&) {
  return nullptr;
}

bool has_avx2() {
  return false;
}

}  // namespace tiny::interp

#endif
