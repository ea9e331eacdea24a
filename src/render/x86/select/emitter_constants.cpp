// Constants of machine programs.
#include "render/x86/select/emitter.h"

namespace tiny::x86 {

uint32_t Emitter::pool_lane(uint64_t bits, int64_t lane) {
  if (lane < 8) bits &= (uint64_t{1} << (8 * lane)) - 1;
  const auto [at, fresh] =
      lane_pool_.try_emplace({bits, lane}, static_cast<uint32_t>(out_.pool.size()));
  if (fresh) {
    PoolConstant c;
    c.lane = static_cast<uint8_t>(lane);
    for (int64_t i = 0; i < lane; ++i) c.bytes.push_back(static_cast<std::byte>(bits >> (8 * i)));
    out_.pool.push_back(std::move(c));
  }
  return at->second;
}

uint32_t Emitter::pool_bytes(std::vector<std::byte> bytes) {
  const std::string key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto [at, fresh] = byte_pool_.try_emplace(key, static_cast<uint32_t>(out_.pool.size()));
  if (fresh) {
    PoolConstant c;
    c.bytes = std::move(bytes);
    out_.pool.push_back(std::move(c));
  }
  return at->second;
}

VReg Emitter::pool_reg(uint32_t pool, int64_t width) {
  const uint64_t key =
      (uint64_t{loop_} << 40) | (uint64_t{pool} << 8) | static_cast<uint64_t>(width);
  const auto [at, fresh] = pool_regs_.try_emplace(key, kNoReg);
  if (!fresh) return at->second;
  const VReg reg = vec_reg(width);
  at->second = reg;
  out_.regs[reg].pooled = true;
  out_.regs[reg].pool = pool;
  Inst i;
  i.op = Opcode::VLoadPool;
  i.width = i.width2 = static_cast<uint8_t>(width);
  i.dst = reg;
  i.mem.kind = MemKind::Pool;
  i.mem.id = pool;
  emit_before_loop(i);
  return reg;
}

VReg Emitter::int_const(int64_t value) {
  const VReg reg = int_reg();
  out_.regs[reg].immediate = true;
  out_.regs[reg].value = value;
  emit(Opcode::IMoveImm, 8, reg).imm = value;
  return reg;
}

VReg Emitter::vector_const(DType dtype, uint64_t bits) {
  return lanes_const(bits, dtype.bytes(), width_of(dtype));
}

VReg Emitter::mask_const(uint64_t bits) {
  const auto [at, fresh] = constant_masks_.try_emplace({loop_, bits}, kNoReg);
  if (!fresh) return at->second;
  Inst value;
  value.op = Opcode::IMoveImm;
  value.width = value.width2 = 8;
  value.dst = int_reg();
  value.imm = static_cast<int64_t>(bits);
  emit_before_loop(value);
  Inst mask = value;
  mask.op = Opcode::KFromInt;
  mask.src[0] = value.dst;
  mask.dst = mask_reg();
  mask.imm = 0;
  emit_before_loop(mask);
  return at->second = mask.dst;
}

}  // namespace tiny::x86
