#include "render/x86/encode.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "base/checked.h"
#include "base/error.h"
#include "base/look_often.h"
#include "render/x86/encoder.h"

namespace tiny::x86 {

using Xbyak::Operand;
using Xbyak::Opmask;
using Xbyak::Reg32;
using Xbyak::Reg64;
using Xbyak::Zmm;

namespace {

constexpr int kCalleeSaved[] = {3, 5, 12, 13, 14, 15};
constexpr int kCallerSaved[] = {0, 1, 2, 6, 7, 8, 9, 10, 11};
constexpr int kRsp = 4, kRax = 0, kRdi = 7;
constexpr size_t kBytesPerInst = 24, kBytesFixed = 4096;
constexpr size_t kAligned = 64;  // as the code lies when it is loaded

bool constant_pattern(const PoolConstant& c, std::byte value) {
  return c.lane != 0 &&
         std::all_of(c.bytes.begin(), c.bytes.end(), [&](std::byte b) { return b == value; });
}

}  // namespace

std::vector<std::byte> encode(MachineProgram& program, const Allocation& allocation,
                              std::vector<CodeMark>* marks) {
  size_t capacity = kBytesFixed + kBytesPerInst * program.code.size() + 64 * program.pool.size();
  for (;;) {
    // What is aligned is aligned by its address here.
    const std::unique_ptr<uint8_t[]> buffer(new uint8_t[capacity + kAligned]);
    void* first = buffer.get();
    size_t space = capacity + kAligned;
    std::align(kAligned, capacity, first, space);
    try {
      Encoder encoder(program, allocation, static_cast<uint8_t*>(first), capacity);
      const size_t size = encoder.run(marks);
      const auto* bytes = static_cast<const std::byte*>(first);
      return std::vector<std::byte>(bytes, bytes + size);
    } catch (const Xbyak::Error& e) {
      invariant(static_cast<int>(e) == Xbyak::ERR_CODE_IS_TOO_BIG, e.what());
    }
    capacity *= 2;
    if (marks) marks->clear();
  }
}

Encoder::Encoder(MachineProgram& program, const Allocation& allocation, uint8_t* buffer,
                 size_t size)
    : program_(program), allocation_(allocation), c_(size, buffer), labels_(program.labels) {
}

size_t Encoder::run(std::vector<CodeMark>* marks) {
  lay_out_pool();
  lay_out_frame();
  prologue();
  for (uint32_t i = 0; i < program_.code.size(); ++i) {
    look_often(program_.stop, i);
    if (marks) marks->push_back({static_cast<uint32_t>(c_.getSize()), i});
    try {
      encode(program_.code[i]);
    } catch (const Xbyak::Error& e) {
      if (static_cast<int>(e) == Xbyak::ERR_CODE_IS_TOO_BIG) throw;
      throw_error(Status::Internal, "x86: cannot encode ", info(program_.code[i].op).name, ": ",
                  e.what());
    }
  }
  epilogue();
  emit_cold_checks();
  emit_cold_polls();
  emit_cold_stores();
  emit_pool();
  return c_.getSize();
}

// Constants read as memory operands are stored at full width, others as one lane.  Zero and all
// ones are made without memory.
void Encoder::lay_out_pool() {
  in_pool_.assign(program_.pool.size(), 0);
  for (PoolConstant& c : program_.pool) c.width = 0;
  for (const Inst& inst : program_.code) {
    if (inst.mem.kind != MemKind::Pool) continue;
    PoolConstant& c = program_.pool[inst.mem.id];
    const bool load = inst.op == Opcode::VLoadPool;
    if (load && (constant_pattern(c, std::byte{0}) || constant_pattern(c, std::byte{0xFF})))
      continue;
    const size_t width = load ? c.bytes.size() : std::max<size_t>(inst.width, c.bytes.size());
    c.width = std::max(c.width, static_cast<uint8_t>(width));
    in_pool_[inst.mem.id] = 1;
  }
  int64_t offset = 0;
  for (int64_t width : {64, 32, 16, 8, 4, 2, 1})
    for (size_t i = 0; i < program_.pool.size(); ++i) {
      PoolConstant& c = program_.pool[i];
      if (!in_pool_[i] || c.width != width) continue;
      c.offset = static_cast<int32_t>(offset);
      offset += width;
    }
  pool_size_ = offset;
}

void Encoder::emit_pool() {
  if (pool_size_ == 0) return;
  c_.align(kAligned);
  c_.L(pool_label_);
  std::vector<uint8_t> bytes(static_cast<size_t>(pool_size_));
  for (size_t i = 0; i < program_.pool.size(); ++i) {
    const PoolConstant& c = program_.pool[i];
    if (!in_pool_[i]) continue;
    for (size_t b = 0; b < c.width; ++b)
      bytes[static_cast<size_t>(c.offset) + b] = static_cast<uint8_t>(c.bytes[b % c.bytes.size()]);
  }
  c_.db(bytes.data(), bytes.size());
}

void Encoder::lay_out_frame() {
  slot_offset_.assign(program_.slots.size(), 0);
  int64_t offset = 0;
  for (int width : {64, 32, 16, 8})
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      if (program_.slots[i] != width) continue;
      slot_offset_[i] = static_cast<int32_t>(offset);
      offset += width;
      if (width > 8) aligned_frame_ = true;
    }
  frame_ = (offset + 63) / 64 * 64;
}

void Encoder::prologue() {
  for (int r : kCalleeSaved)
    if (allocation_.int_used >> r & 1) c_.push(Reg64(r));
  if (frame_ == 0) return;
  const Reg64 rsp(kRsp), rax(kRax);
  if (!aligned_frame_) {
    c_.sub(rsp, static_cast<uint32_t>(frame_));
    return;
  }
  c_.mov(rax, rsp);
  c_.sub(rsp, static_cast<uint32_t>(frame_ + 64));
  c_.and_(rsp, static_cast<uint32_t>(-64));
  c_.mov(c_.ptr[rsp + static_cast<size_t>(frame_)], rax);
}

void Encoder::epilogue() {
  if (allocation_.vec_used) c_.vzeroupper();
  const Reg64 rsp(kRsp);
  if (frame_ != 0) {
    if (aligned_frame_)
      c_.mov(rsp, c_.ptr[rsp + static_cast<size_t>(frame_)]);
    else
      c_.add(rsp, static_cast<uint32_t>(frame_));
  }
  for (auto r = std::rbegin(kCalleeSaved); r != std::rend(kCalleeSaved); ++r)
    if (allocation_.int_used >> *r & 1) c_.pop(Reg64(*r));
  c_.ret();
}

// Out of line: writes the status word if it is 0.  Workers may fail at the same time.
void Encoder::emit_cold_checks() {
  const Reg64 rax(0), rcx(1), rdx(2);
  for (ColdCheck& check : cold_) {
    Xbyak::Label done;
    c_.L(check.enter);
    c_.push(rax);
    c_.push(rcx);
    c_.push(rdx);
    c_.push(Reg64(check.status));
    c_.push(Reg64(check.position));
    c_.pop(rdx);
    c_.pop(rcx);
    c_.test(rcx, rcx);
    c_.jz(done, Xbyak::CodeGenerator::T_NEAR);
    c_.mov(rax, static_cast<uint64_t>((int64_t{1} << 47) - 1));
    c_.and_(rdx, rax);
    c_.mov(rax, static_cast<uint64_t>(check.check + 1) << 47);
    c_.or_(rdx, rax);
    c_.xor_(Reg32(0), Reg32(0));
    c_.lock();
    c_.cmpxchg(c_.qword[rcx], rdx);
    c_.L(done);
    c_.pop(rdx);
    c_.pop(rcx);
    c_.pop(rax);
    c_.jmp(check.back, Xbyak::CodeGenerator::T_NEAR);
  }
}

// Out of line: calls the function that a poll points at, with every register kept.
void Encoder::emit_cold_polls() {
  if (cold_polls_.empty()) return;
  uint32_t vectors = 0, masks = 0;  // bit by bit those that are used
  for (VReg v = 0; v < program_.regs.size(); ++v) {
    if (number(v) < 0 || program_.regs[v].cls == RegClass::Int) continue;
    (program_.regs[v].cls == RegClass::Vec ? vectors : masks) |= uint32_t{1} << number(v);
  }
  const int64_t width = program_.avx512 ? 64 : 32;
  const int64_t frame = round_up(width * std::popcount(vectors) + 8 * std::popcount(masks) + 8, 64);
  const Reg64 rsp(kRsp), rax(kRax), rdi(kRdi);
  const auto at = [&](int64_t offset) { return c_.ptr[rsp + static_cast<size_t>(offset)]; };
  const auto move_registers = [&](bool out) {
    int64_t offset = 0;
    for (int i = 0; i < 32; ++i) {
      if (!(vectors >> i & 1)) continue;
      out ? c_.vmovups(at(offset), vec(i, width)) : c_.vmovups(vec(i, width), at(offset));
      offset += width;
    }
    for (int i = 0; i < 8; ++i) {
      if (!(masks >> i & 1)) continue;
      out ? c_.kmovq(at(offset), Opmask(i)) : c_.kmovq(Opmask(i), at(offset));
      offset += 8;
    }
  };
  for (ColdPoll& poll : cold_polls_) {
    c_.L(poll.enter);
    for (int r : kCallerSaved) c_.push(Reg64(r));
    c_.mov(rdi, Reg64(poll.poll));
    c_.mov(rax, rsp);
    c_.sub(rsp, static_cast<uint32_t>(frame));
    c_.and_(rsp, static_cast<uint32_t>(-64));
    c_.mov(at(frame - 8), rax);
    move_registers(true);
    c_.vzeroupper();
    c_.call(c_.qword[rdi]);
    move_registers(false);
    c_.test(Reg32(kRax), Reg32(kRax));
    c_.mov(rsp, at(frame - 8));  // from here on the flags are kept
    for (auto r = std::rbegin(kCallerSaved); r != std::rend(kCallerSaved); ++r) c_.pop(Reg64(*r));
    c_.jnz(labels_[poll.leave], Xbyak::CodeGenerator::T_NEAR);
    c_.jmp(poll.back, Xbyak::CodeGenerator::T_NEAR);
  }
}

Zmm Encoder::vec(int number, int64_t bytes) {
  Zmm v(number);
  v.setKind(bytes == 64 ? Operand::ZMM : bytes == 32 ? Operand::YMM : Operand::XMM);
  return v;
}

Zmm Encoder::dst_of(const Inst& inst) const {
  Zmm v = vec_of(inst.dst, inst.width);
  if (inst.mask != kNoReg) {
    v.setOpmaskIdx(number(inst.mask));
    if (inst.flags & kZeroing) v.setZero();
  }
  return v;
}

Xbyak::Reg8 Encoder::r8(VReg v) const {
  const int n = number(v);
  return Xbyak::Reg8(n, n >= 4 && n < 8);
}

Xbyak::Address Encoder::memory(const Mem& mem, int bits) {
  const Xbyak::AddressFrame& frame = bits == 8    ? c_.byte
                                     : bits == 16 ? c_.word
                                     : bits == 32 ? c_.dword
                                     : bits == 64 ? c_.qword
                                                  : c_.ptr;
  if (mem.kind == MemKind::Pool) return frame[c_.rip + pool_label_ + program_.pool[mem.id].offset];
  Xbyak::RegExp e;
  if (mem.kind == MemKind::Slot)
    e = Reg64(kRsp) + static_cast<size_t>(slot_offset_[mem.id]);
  else
    e = Xbyak::RegExp(r64(mem.base));
  if (mem.index != kNoReg) e = e + r64(mem.index) * mem.scale;
  return frame[e + static_cast<size_t>(static_cast<int64_t>(mem.disp))];
}

Xbyak::Address Encoder::vector_memory(const Inst& inst) {
  const Xbyak::RegExp index(vec_of(inst.src[1], inst.width), inst.mem.scale);
  return c_.ptr[Xbyak::RegExp(r64(inst.mem.base)) + index +
                static_cast<size_t>(static_cast<int64_t>(inst.mem.disp))];
}

void Encoder::encode(const Inst& inst) {
  const bool done = encode_shaped(inst) || encode_int(inst) || encode_vector(inst) ||
                    encode_tile(inst) || encode_mask(inst) || encode_control(inst);
  invariant(done, "every machine instruction can be encoded");
}

void Encoder::compare_to_mask(const Inst& inst, const Opmask& k, const Zmm& a, const Operand& m) {
  const auto predicate = static_cast<uint8_t>(inst.imm);
  switch (inst.op) {
    case Opcode::KCmpps:
      return c_.vcmpps(k, a, m, predicate);
    case Opcode::KCmppd:
      return c_.vcmppd(k, a, m, predicate);
    case Opcode::KCmpss:
      return c_.vcmpss(k, a, m, predicate);
    default:
      return c_.vcmpsd(k, a, m, predicate);
  }
}

// The rows of opcodes.def that have a shape are one call each.
bool Encoder::encode_shaped(const Inst& inst) {
  const Shape shape = info(inst.op).shape;
  if (shape == Shape::Special) return false;
  const bool to_mask = shape == Shape::KRM || shape == Shape::KRMI || shape == Shape::KCmp;
  const bool unary =
      shape == Shape::RM || shape == Shape::RMI || shape == Shape::RRI || shape == Shape::RR;
  const Zmm d = to_mask ? Zmm(0) : dst_of(inst);
  const Opmask k(to_mask ? number(inst.dst) : 0);
  const Zmm a =
      inst.src[0] == kNoReg ? Zmm(0) : vec_of(inst.src[0], unary ? inst.width2 : inst.width);
  const VReg last = unary ? inst.src[0] : inst.src[1];
  const Zmm register_operand =
      last == kNoReg ? Zmm(0) : vec_of(last, unary ? inst.width2 : inst.width);
  const bool from_memory = has_memory(inst);
  const Xbyak::Address memory_operand = from_memory ? memory(inst.mem) : c_.ptr[Reg64(kRsp)];
  const Operand& m = from_memory ? static_cast<const Operand&>(memory_operand) : register_operand;
  const auto imm = static_cast<uint8_t>(inst.imm);
  using Xbyak::CodeGenerator;
  switch (inst.op) {
#define RRM(name) c_.name(d, a, m)
#define RRMI(name) c_.name(d, a, m, imm)
#define RM(name) c_.name(d, m)
#define RMI(name) c_.name(d, m, imm)
#define RR(name) c_.name(d, a)
#define RRI(name) c_.name(d, a, imm)
#define KRM(name) c_.name(k, a, m)
#define KRMI(name) c_.name(k, a, m, imm)
#define Special(name) return false
#define KCmp(name) compare_to_mask(inst, k, a, m)
#define OPCODE(name, shape, flags) \
  case Opcode::name:               \
    shape(name);                   \
    return true;
#include "render/x86/opcodes.def"
  }
  return false;
}

}  // namespace tiny::x86
