// Tiles of Intel AMX, which instructions name by number.
#include "render/x86/encoder.h"

namespace tiny::x86 {

using Xbyak::Tmm;

bool Encoder::encode_tile(const Inst& inst) {
  const auto tile = [&](int byte) { return Tmm(static_cast<int>(inst.imm >> (8 * byte) & 7)); };
  switch (inst.op) {
    case Opcode::TileConfig:
      c_.ldtilecfg(memory(inst.mem));
      return true;
    case Opcode::TileZero:
      c_.tilezero(tile(0));
      return true;
    case Opcode::TileLoad:
      c_.tileloadd(tile(0), memory(inst.mem));
      return true;
    case Opcode::TileStore:
      c_.tilestored(memory(inst.mem), tile(0));
      return true;
    case Opcode::TileRelease:
      c_.tilerelease();
      return true;
    case Opcode::TileDot:
      break;
    default:
      return false;
  }
  constexpr int kSignedFirst = 1, kSignedSecond = 2;
  switch (inst.width2) {
    case 0:
      c_.tdpbuud(tile(0), tile(1), tile(2));
      return true;
    case kSignedFirst:
      c_.tdpbsud(tile(0), tile(1), tile(2));
      return true;
    case kSignedSecond:
      c_.tdpbusd(tile(0), tile(1), tile(2));
      return true;
    default:
      c_.tdpbssd(tile(0), tile(1), tile(2));
      return true;
  }
}

}  // namespace tiny::x86
