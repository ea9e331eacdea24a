#include "render/x86/machine.h"

namespace tiny::x86 {

namespace {

constexpr uint8_t Pair = kPair, Late1 = kLate1, LateMem = kLateMem, Effect = kEffectful,
                  Divides = kDivides;
constexpr OpcodeInfo kOpcodes[] = {
#define OPCODE(name, shape, flags) {#name, Shape::shape, flags},
#include "render/x86/opcodes.def"
};

}  // namespace

const OpcodeInfo& info(Opcode op) {
  return kOpcodes[static_cast<size_t>(op)];
}

}  // namespace tiny::x86
