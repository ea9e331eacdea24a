// Vector and mask instructions that have no common shape.
#include "render/x86/encoder.h"

#include <algorithm>

#include "base/error.h"
#include "ir/dot.h"

namespace tiny::x86 {

using Xbyak::Address;
using Xbyak::CodeGenerator;
using Xbyak::Opmask;
using Xbyak::Reg32;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Zmm;

bool Encoder::encode_vector(const Inst& inst) {
  switch (inst.op) {
    case Opcode::VMove:
      vector_move(inst);
      return true;
    case Opcode::VZero: {
      const Zmm x = vec_of(inst.dst, 16);
      c_.vxorps(x, x, x);
      return true;
    }
    case Opcode::VLoad:
      vector_load(inst);
      return true;
    case Opcode::VStore:
      vector_store(inst);
      return true;
    case Opcode::VStoreBypass:
      bypassing_store(inst);
      return true;
    case Opcode::Fence:
      c_.sfence();
      return true;
    case Opcode::VLoadPool:
      load_pool(inst);
      return true;
    case Opcode::VMaskLoad:
    case Opcode::VMaskStore:
      masked_memory_avx2(inst);
      return true;
    case Opcode::VExtract:
    case Opcode::VInsert:
      extract_insert(inst);
      return true;
    case Opcode::VPermute2: {
      const Zmm d = vec_of(inst.dst, inst.width), index = vec_of(inst.src[1], inst.width),
                b = vec_of(inst.src[2], inst.width);
      if (inst.width2 == 2)
        c_.vpermt2w(d, index, b);
      else if (inst.width2 == 4)
        c_.vpermt2ps(d, index, b);
      else
        c_.vpermt2pd(d, index, b);
      return true;
    }
    case Opcode::VStoreLane:
      store_lane(inst);
      return true;
    case Opcode::VPextr:
    case Opcode::VToInt:
    case Opcode::VMoveMask:
      lane_to_int(inst);
      return true;
    case Opcode::VPinsr:
    case Opcode::VFromInt:
      int_to_lane(inst);
      return true;
    case Opcode::VBroadcastInt:
      broadcast_int(inst);
      return true;
    case Opcode::VBlend:
      blend(inst);
      return true;
    case Opcode::Fma:
    case Opcode::FmaScalar:
      fma(inst);
      return true;
    case Opcode::Dot:
      dot(inst);
      return true;
    case Opcode::VGather:
    case Opcode::VScatter:
      gather(inst);
      return true;
    case Opcode::CvtIntToFloat:
    case Opcode::CvtFloatToInt:
      convert_scalar(inst);
      return true;
    default:
      return false;
  }
}

bool Encoder::encode_mask(const Inst& inst) {
  const auto k = [&](VReg v) { return mask_of(v); };
  switch (inst.op) {
    case Opcode::KMove:
      if (number(inst.dst) != number(inst.src[0])) c_.kmovq(k(inst.dst), k(inst.src[0]));
      return true;
    case Opcode::KFromInt:
      c_.kmovq(k(inst.dst), r64(inst.src[0]));
      return true;
    case Opcode::KToInt:
      c_.kmovq(r64(inst.dst), k(inst.src[0]));
      return true;
    case Opcode::KAnd:
      c_.kandq(k(inst.dst), k(inst.src[0]), k(inst.src[1]));
      return true;
    case Opcode::KOr:
      c_.korq(k(inst.dst), k(inst.src[0]), k(inst.src[1]));
      return true;
    case Opcode::KXor:
      c_.kxorq(k(inst.dst), k(inst.src[0]), k(inst.src[1]));
      return true;
    case Opcode::KNot:
      c_.knotq(k(inst.dst), k(inst.src[0]));
      return true;
    case Opcode::KLoad:
      c_.kmovq(k(inst.dst), memory(inst.mem));
      return true;
    case Opcode::KStore:
      c_.kmovq(memory(inst.mem), k(inst.src[0]));
      return true;
    default:
      return false;
  }
}

void Encoder::vector_move(const Inst& inst) {
  const Zmm d = dst_of(inst), a = vec_of(inst.src[0], inst.width);
  if (inst.mask == kNoReg) {
    if (number(inst.dst) != number(inst.src[0])) c_.vmovaps(d, a);
    return;
  }
  switch (inst.width2) {
    case 1:
      return c_.vmovdqu8(d, a);
    case 2:
      return c_.vmovdqu16(d, a);
    case 4:
      return c_.vmovups(d, a);
    default:
      return c_.vmovupd(d, a);
  }
}

void Encoder::vector_load(const Inst& inst) {
  const Zmm d = dst_of(inst);
  const Address m = memory(inst.mem);
  if (inst.mask != kNoReg) {
    switch (inst.width2) {
      case 1:
        return c_.vmovdqu8(d, m);
      case 2:
        return c_.vmovdqu16(d, m);
      case 4:
        return c_.vmovups(d, m);
      default:
        return c_.vmovupd(d, m);
    }
  }
  switch (inst.width) {
    case 2:
      return c_.vpbroadcastw(d, m);
    case 4:
      return c_.vmovss(d, m);
    case 8:
      return c_.vmovsd(d, m);
    default:
      return c_.vmovups(d, m);
  }
}

void Encoder::vector_store(const Inst& inst) {
  const Zmm a = vec_of(inst.src[0], inst.width);
  Address m = memory(inst.mem);
  if (inst.mask != kNoReg) {
    m.setOpmaskIdx(number(inst.mask));
    switch (inst.width2) {
      case 1:
        return c_.vmovdqu8(m, a);
      case 2:
        return c_.vmovdqu16(m, a);
      case 4:
        return c_.vmovups(m, a);
      default:
        return c_.vmovupd(m, a);
    }
  }
  switch (inst.width) {
    case 2:
      return c_.vpextrw(m, a, 0);
    case 4:
      return c_.vmovss(m, a);
    case 8:
      return c_.vmovsd(m, a);
    default:
      return c_.vmovups(m, a);
  }
}

void Encoder::bypassing_store(const Inst& inst) {
  const Reg64 at = r64(inst.dst);
  const Zmm value = vec_of(inst.src[0], inst.width);
  ColdStore& cold = cold_stores_.emplace_back();
  cold.address = number(inst.dst);
  cold.value = number(inst.src[0]);
  cold.bytes = inst.width;
  c_.lea(at, memory(inst.mem));
  c_.test(r32(inst.dst), static_cast<uint32_t>(inst.width - 1));
  c_.jnz(cold.enter, CodeGenerator::T_NEAR);
  c_.vmovntps(c_.ptr[at], value);
  c_.L(cold.back);
}

// Out of line: what is not aligned is stored as usual.
void Encoder::emit_cold_stores() {
  for (ColdStore& cold : cold_stores_) {
    c_.L(cold.enter);
    c_.vmovups(c_.ptr[Reg64(cold.address)], vec(cold.value, cold.bytes));
    c_.jmp(cold.back, CodeGenerator::T_NEAR);
  }
}

void Encoder::load_pool(const Inst& inst) {
  const PoolConstant& c = program_.pool[inst.mem.id];
  const Zmm d = vec_of(inst.dst, inst.width);
  const auto all = [&](std::byte value) {
    return c.lane != 0 &&
           std::all_of(c.bytes.begin(), c.bytes.end(), [&](std::byte b) { return b == value; });
  };
  if (all(std::byte{0})) {
    const Zmm x = vec_of(inst.dst, 16);
    return c_.vxorps(x, x, x);
  }
  if (all(std::byte{0xFF})) {
    if (program_.avx512) return c_.vpternlogd(d, d, d, 0xFF);
    return c_.vpcmpeqd(d, d, d);
  }
  const Address m = memory(inst.mem);
  switch (c.lane) {
    case 1:
      return c_.vpbroadcastb(d, m);
    case 2:
      return c_.vpbroadcastw(d, m);
    case 4:
      return c_.vbroadcastss(d, m);
    case 8:
      return inst.width == 16 ? c_.vmovddup(d, m) : c_.vbroadcastsd(d, m);
    default:
      return c_.vmovups(d, m);
  }
}

void Encoder::masked_memory_avx2(const Inst& inst) {
  const Zmm mask = vec_of(inst.src[0], inst.width);
  const Address m = memory(inst.mem);
  const bool single = inst.width2 == 4;
  if (inst.op == Opcode::VMaskLoad) {
    const Zmm d = vec_of(inst.dst, inst.width);
    return single ? c_.vmaskmovps(d, mask, m) : c_.vmaskmovpd(d, mask, m);
  }
  const Zmm value = vec_of(inst.src[1], inst.width);
  return single ? c_.vmaskmovps(m, mask, value) : c_.vmaskmovpd(m, mask, value);
}

void Encoder::extract_insert(const Inst& inst) {
  const auto at = static_cast<uint8_t>(inst.imm);
  const bool evex = program_.avx512;
  const Zmm d = vec_of(inst.dst, inst.width),
            a = vec_of(inst.src[0], inst.op == Opcode::VExtract ? inst.width2 : inst.width);
  if (inst.op == Opcode::VExtract) {
    if (inst.width == 32) return c_.vextractf64x4(d, a, at);
    return evex ? c_.vextractf32x4(d, a, at) : c_.vextractf128(d, a, at);
  }
  const Zmm b = vec_of(inst.src[1], inst.width2);
  if (inst.width2 == 32) return c_.vinsertf64x4(d, a, b, at);
  return evex ? c_.vinsertf32x4(d, a, b, at) : c_.vinsertf128(d, a, b, at);
}

void Encoder::lane_to_int(const Inst& inst) {
  if (inst.op == Opcode::VMoveMask) {
    const Zmm a = vec_of(inst.src[0], inst.width);
    if (inst.width2 == 1) return c_.vpmovmskb(r32(inst.dst), a);
    return inst.width2 == 4 ? c_.vmovmskps(r32(inst.dst), a) : c_.vmovmskpd(r32(inst.dst), a);
  }
  const Zmm a = vec_of(inst.src[0], 16);
  if (inst.op == Opcode::VToInt)
    return inst.width2 == 8 ? c_.vmovq(r64(inst.dst), a) : c_.vmovd(r32(inst.dst), a);
  const auto at = static_cast<uint8_t>(inst.imm);
  switch (inst.width2) {
    case 1:
      return c_.vpextrb(r32(inst.dst), a, at);
    case 2:
      return c_.vpextrw(r32(inst.dst), a, at);
    case 4:
      return c_.vpextrd(r32(inst.dst), a, at);
    default:
      return c_.vpextrq(r64(inst.dst), a, at);
  }
}

void Encoder::store_lane(const Inst& inst) {
  const Zmm a = vec_of(inst.src[0], 16);
  const Address m = memory(inst.mem);
  const auto at = static_cast<uint8_t>(inst.imm);
  switch (inst.width2) {
    case 1:
      return c_.vpextrb(m, a, at);
    case 2:
      return c_.vpextrw(m, a, at);
    case 4:
      return at == 0 ? c_.vmovss(m, a) : c_.vpextrd(m, a, at);
    default:
      return at == 0 ? c_.vmovsd(m, a) : c_.vpextrq(m, a, at);
  }
}

void Encoder::int_to_lane(const Inst& inst) {
  const Zmm d = vec_of(inst.dst, 16);
  if (inst.op == Opcode::VFromInt)
    return inst.width2 == 8 ? c_.vmovq(d, r64(inst.src[0])) : c_.vmovd(d, r32(inst.src[0]));
  const Zmm a = vec_of(inst.src[0], 16);
  const auto at = static_cast<uint8_t>(inst.imm);
  const auto insert = [&](const Xbyak::Operand& from) {
    switch (inst.width2) {
      case 1:
        return c_.vpinsrb(d, a, from, at);
      case 2:
        return c_.vpinsrw(d, a, from, at);
      case 4:
        return c_.vpinsrd(d, a, from, at);
      default:
        return c_.vpinsrq(d, a, from, at);
    }
  };
  if (has_memory(inst)) return insert(memory(inst.mem));
  if (inst.width2 == 8) return insert(r64(inst.src[1]));
  insert(r32(inst.src[1]));
}

void Encoder::broadcast_int(const Inst& inst) {
  const Zmm d = vec_of(inst.dst, inst.width);
  switch (inst.width2) {
    case 1:
      return c_.vpbroadcastb(d, Xbyak::Reg8(number(inst.src[0])));
    case 2:
      return c_.vpbroadcastw(d, Xbyak::Reg16(number(inst.src[0])));
    case 4:
      return c_.vpbroadcastd(d, r32(inst.src[0]));
    default:
      return c_.vpbroadcastq(d, r64(inst.src[0]));
  }
}

void Encoder::blend(const Inst& inst) {
  const Zmm d = vec_of(inst.dst, inst.width), no = vec_of(inst.src[0], inst.width),
            yes = vec_of(inst.src[1], inst.width), mask = vec_of(inst.src[2], inst.width);
  switch (inst.width2) {
    case 4:
      return c_.vblendvps(d, no, yes, mask);
    case 8:
      return c_.vblendvpd(d, no, yes, mask);
    default:
      return c_.vpblendvb(d, no, yes, mask);
  }
}

namespace {

using FmaFunction = void (CodeGenerator::*)(const Xmm&, const Xmm&, const Xbyak::Operand&);
constexpr FmaFunction kFma132[] = {&CodeGenerator::vfmadd132ps, &CodeGenerator::vfmadd132pd,
                                   &CodeGenerator::vfmadd132ss, &CodeGenerator::vfmadd132sd};
constexpr FmaFunction kFma213[] = {&CodeGenerator::vfmadd213ps, &CodeGenerator::vfmadd213pd,
                                   &CodeGenerator::vfmadd213ss, &CodeGenerator::vfmadd213sd};
constexpr FmaFunction kFma231[] = {&CodeGenerator::vfmadd231ps, &CodeGenerator::vfmadd231pd,
                                   &CodeGenerator::vfmadd231ss, &CodeGenerator::vfmadd231sd};

}  // namespace

// The form is the one whose overwritten operand is in dst already:
// 132: dst = dst*third + second;  213: dst = second*dst + third;  231: dst = second*third + dst.
void Encoder::fma(const Inst& inst) {
  const size_t kind = (inst.op == Opcode::FmaScalar ? 2u : 0u) + (inst.width2 == 8 ? 1u : 0u);
  const int d = number(inst.dst);
  const auto in_dst = [&](size_t s) { return inst.src[s] != kNoReg && number(inst.src[s]) == d; };
  const auto reg = [&](size_t s) { return vec_of(inst.src[s], inst.width); };
  const Zmm dst = vec_of(inst.dst, inst.width);
  const auto put = [&](const auto& forms, const Xmm& second, const Xbyak::Operand& third) {
    (c_.*forms[kind])(dst, second, third);
  };
  if (!has_memory(inst)) {
    if (in_dst(2)) return put(kFma231, reg(0), reg(1));
    if (in_dst(0)) return put(kFma213, reg(1), reg(2));
    if (in_dst(1)) return put(kFma213, reg(0), reg(2));
    c_.vmovaps(dst, reg(2));
    return put(kFma231, reg(0), reg(1));
  }
  const Address m = memory(inst.mem);
  if (inst.src[2] == kNoReg) {
    if (in_dst(1)) return put(kFma213, reg(0), m);
    if (!in_dst(0)) c_.vmovaps(dst, reg(0));
    return put(kFma213, reg(1), m);
  }
  const size_t factor = inst.src[0] == kNoReg ? 1 : 0;
  if (in_dst(factor) && !in_dst(2)) return put(kFma132, reg(2), m);
  if (!in_dst(2)) c_.vmovaps(dst, reg(2));
  put(kFma231, reg(factor), m);
}

// AVX-512 has a form of its own for bytes, AVX2 that of AVX-VNNI.
void Encoder::dot(const Inst& inst) {
  const Zmm d = vec_of(inst.dst, inst.width), a = vec_of(inst.src[0], inst.width);
  const auto put = [&](const Xbyak::Operand& b) {
    switch (static_cast<DotKind>(inst.width2)) {
      case DotKind::U8U8:
        return c_.vpdpbuud(d, a, b);
      case DotKind::U8S8:
        return c_.vpdpbusd(d, a, b, program_.avx512 ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
      case DotKind::S8S8:
        return c_.vpdpbssd(d, a, b);
      case DotKind::Bf16:
        return c_.vdpbf16ps(d, a, b);
    }
  };
  if (has_memory(inst)) return put(memory(inst.mem));
  put(vec_of(inst.src[1], inst.width));
}

void Encoder::gather(const Inst& inst) {
  const bool single = inst.width2 == 4;
  const int64_t data = single ? std::max(16, inst.width / 2) : inst.width;
  const Address m = vector_memory(inst);
  if (inst.op == Opcode::VScatter) {
    Address under = m;
    under.setOpmaskIdx(number(inst.src[2]));
    const Zmm a = vec_of(inst.src[0], data);
    return single ? c_.vscatterqps(under, a) : c_.vscatterqpd(under, a);
  }
  Zmm d = vec_of(inst.dst, data);
  if (program_.avx512) {
    d.setOpmaskIdx(number(inst.src[2]));
    return single ? c_.vgatherqps(d, m) : c_.vgatherqpd(d, m);
  }
  const Zmm mask = vec_of(inst.src[2], data);
  return single ? c_.vgatherqps(d, m, mask) : c_.vgatherqpd(d, m, mask);
}

void Encoder::convert_scalar(const Inst& inst) {
  const bool wide = inst.width == 8, single = inst.width2 == 4;
  if (inst.op == Opcode::CvtFloatToInt) {
    const Zmm a = vec_of(inst.src[0], 16);
    if (single) return wide ? c_.vcvttss2si(r64(inst.dst), a) : c_.vcvttss2si(r32(inst.dst), a);
    return wide ? c_.vcvttsd2si(r64(inst.dst), a) : c_.vcvttsd2si(r32(inst.dst), a);
  }
  const Zmm d = vec_of(inst.dst, 16);
  c_.vxorps(d, d, d);  // no dependence on what was there
  if (single)
    return wide ? c_.vcvtsi2ss(d, d, r64(inst.src[0])) : c_.vcvtsi2ss(d, d, r32(inst.src[0]));
  return wide ? c_.vcvtsi2sd(d, d, r64(inst.src[0])) : c_.vcvtsi2sd(d, d, r32(inst.src[0]));
}

}  // namespace tiny::x86
