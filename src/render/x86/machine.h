// Machine instructions over virtual registers: what the selector leaves, the allocator rewrites and
// the encoder spells.
//
// A virtual register has a class and may be written more than once (accumulators, loop variables,
// values built piece by piece); its first write stands before every read in program order.  Control
// is structured: labels and jumps come from loops and ifs only, so a live range is one interval,
// stretched to the end of every loop that it enters from outside.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/linear.h"

namespace tiny::x86 {

enum class Opcode : uint16_t {
#define OPCODE(name, shape, flags) name,
#include "render/x86/opcodes.def"
};

enum class Shape : uint8_t { RRM, RRMI, RM, RMI, RRI, RR, KRM, KRMI, KCmp, Special };

enum OpcodeFlags : uint8_t { kPair = 1, kLate1 = 2, kLateMem = 4, kEffectful = 8, kDivides = 16 };

struct OpcodeInfo {
  char name[16];  // in place: a pointer is a relocation, larger than the name
  Shape shape;
  uint8_t flags;
};
const OpcodeInfo& info(Opcode op);

enum class RegClass : uint8_t { Int, Vec, Mask };
using VReg = uint32_t;
inline constexpr VReg kNoReg = UINT32_MAX;

// Conditions, numbered as the processor encodes them.
enum class Cond : uint8_t {
  B = 2,
  AE = 3,
  E = 4,
  NE = 5,
  BE = 6,
  A = 7,
  NP = 11,
  L = 12,
  GE = 13,
  LE = 14,
  G = 15
};

enum class DivideKind : uint8_t { FloorDiv, FloorMod, TruncDiv, TruncMod };

enum class MemKind : uint8_t { None, Address, Pool, Slot };

struct Mem {
  MemKind kind = MemKind::None;
  uint8_t scale = 1;
  int32_t disp = 0;
  VReg base = kNoReg;
  VReg index = kNoReg;
  uint32_t id = 0;  // of the pool constant or the stack slot
};

enum InstFlags : uint8_t { kUseImm = 1, kSigned = 2, kZeroing = 4, kKnownDivisor = 8 };

struct Inst {
  Opcode op;
  uint8_t width = 0;   // bytes operated on: 16, 32, 64 for vectors; 4, 8 for integers
  uint8_t width2 = 0;  // opcodes.def says of what
  uint8_t flags = 0;
  Cond cond = Cond::E;
  VReg dst = kNoReg;
  std::array<VReg, 3> src{kNoReg, kNoReg, kNoReg};
  VReg mask = kNoReg;  // AVX-512 write mask
  Mem mem;
  int64_t imm = 0;
  uint32_t label = 0;
  LinearId origin = 0;
};

struct RegInfo {
  RegClass cls = RegClass::Int;
  uint8_t bytes = 8;       // a spill slot needs
  bool temporary = false;  // made by the spiller: is never spilled again
  bool pooled = false;     // a constant: made again, or read from the pool, instead of spilled
  bool immediate = false;  // an integer constant
  uint32_t pool = 0;
  int64_t value = 0;
};

// A constant behind the code: `lane` bytes repeated, or `bytes` as they are.
struct PoolConstant {
  std::vector<std::byte> bytes;
  uint8_t lane = 0;    // 0: not a repeated lane
  uint8_t width = 0;   // bytes that some instruction reads as a whole
  int32_t offset = 0;  // from the start of the pool, given by the encoder
};

struct MachineProgram {
  bool avx512 = false;
  std::vector<Inst> code;
  std::vector<RegInfo> regs;
  std::vector<PoolConstant> pool;
  std::vector<uint8_t> slots;  // bytes of each stack slot
  uint32_t labels = 0;
  const StopSignal* stop = nullptr;  // the linear program's

  VReg add_reg(RegClass cls, int64_t bytes) {
    RegInfo r;
    r.cls = cls;
    r.bytes = static_cast<uint8_t>(bytes);
    regs.push_back(r);
    return static_cast<VReg>(regs.size() - 1);
  }
};

}  // namespace tiny::x86
