#include <algorithm>
#include <bit>

#include "base/look_often.h"
#include "render/x86/selector.h"

namespace tiny::x86 {

namespace {

constexpr uint8_t Pair = kPair, Late1 = kLate1, LateMem = kLateMem, Effect = kEffectful,
                  Divides = kDivides;
constexpr OpcodeInfo kOpcodes[] = {
#define OPCODE(name, shape, flags) {#name, Shape::shape, flags},
#include "render/x86/opcodes.def"
};

bool opens_block(Op op) {
  return op == Op::Loop || op == Op::If;
}

bool ends_epoch(Op op) {
  return opens_block(op) || op == Op::EndLoop || op == Op::EndIf || op == Op::Store ||
         op == Op::Set;
}

// Ops that write their result with their last instruction, so that it may replace an operand.
bool computes_in_place(const LinearOp& o) {
  if (o.dtype.is_bool()) return false;
  switch (o.op) {
    case Op::Dot:
      return o.dtype.lanes > 1;
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Max:
    case Op::Min:
    case Op::Fma:
      return o.dtype.lanes == 1 || o.dtype.bytes() >= 4;
    default:
      return false;
  }
}

}  // namespace

const OpcodeInfo& info(Opcode op) {
  return kOpcodes[static_cast<size_t>(op)];
}

MachineProgram select(const LinearProgram& program, bool avx512) {
  return Selector(program, avx512).run();
}

Selector::Selector(const LinearProgram& program, bool avx512)
    : program_(program), avx512_(avx512), values_(program.ops.size()), facts_(program.ops.size()) {
  out_.avx512 = avx512;
  out_.stop = program.stop;
  out_.code.reserve(program.ops.size() * 2);
  out_.regs.reserve(program.ops.size() * 2);
  preheaders_.emplace_back();
}

MachineProgram Selector::run() {
  analyse();
  args_ = int_reg();
  emit(Opcode::IArgs, 8, args_);
  emit(Opcode::Preheader, 0).imm = 0;
  for (at_ = 0; at_ < program_.ops.size(); ++at_) {
    look_often(program_.stop, at_);
    select_op(at_);
  }
  --at_;  // what ends the code is the last op's
  if (poll_ != kNoReg) emit(Opcode::Label, 0).label = left_;
  if (bypasses_) emit(Opcode::Fence, 0);
  splice_preheaders();
  drop_dead();
  return std::move(out_);
}

void Selector::unsupported(const char* why) const {
  const LinearOp& o = op(at_);
  throw Error(Status::Unsupported, cat("x86: op %", at_, " ", tiny::info(o.op).name, " of ",
                                       to_string(o.dtype), ": ", why));
}

void Selector::analyse() {
  uint32_t epoch = 0, block = 0;
  for (LinearId i = 0; i < program_.ops.size(); ++i) {
    const LinearOp& o = op(i);
    for (size_t s = 0; s < o.count; ++s) {
      ++facts_[o.src[s]].uses;
      facts_[o.src[s]].user = i;
    }
    if (ends_epoch(o.op)) ++epoch;
    if (opens_block(o.op) || o.op == Op::EndLoop || o.op == Op::EndIf) ++block;
    facts_[i].epoch = epoch;
    facts_[i].block = block;
  }
  find_targets();
  find_squares();
  if (!avx512_) want_lanes();
}

// A value whose only use is to be Set into an accumulator is computed in the accumulator's
// register, and so are the partial sums it is made of, as long as nothing reads the accumulator
// meanwhile.
void Selector::find_targets() {
  std::vector<LinearId> last_read(program_.ops.size(), 0);
  for (LinearId i = 0; i < program_.ops.size(); ++i) {
    const LinearOp& o = op(i);
    if (o.op == Op::Set) {
      const LinearId acc = o.src[0];
      const LinearId barrier = last_read[acc];
      for (LinearId v = o.src[1]; v >= barrier && v > acc;) {
        if (facts_[v].uses != 1 || facts_[v].block != facts_[i].block ||
            !computes_in_place(op(v)) || facts_[v].target != kNoTarget)
          break;
        facts_[v].target = acc;
        const LinearOp& made = op(v);
        v = made.op == Op::Fma || made.op == Op::Dot ? made.src[2]
                                                     : std::max(made.src[0], made.src[1]);
      }
      last_read[acc] = i;
      continue;
    }
    for (size_t s = 0; s < o.count; ++s)
      if (source(o, s).op == Op::Accumulator) last_read[o.src[s]] = i;
  }
}

// AVX2 masks are made in the lanes that their users have, where they have no width of their own.
void Selector::want_lanes() {
  for (LinearId i = static_cast<LinearId>(program_.ops.size()); i-- > 0;) {
    const LinearOp& o = op(i);
    for (size_t s = 0; s < o.count; ++s) {
      if (!is_mask(source(o, s).dtype)) continue;
      int64_t lane = 0;
      if (o.op == Op::Store)
        lane = s == 3 ? source(o, 2).dtype.bytes() : 1;
      else if (o.op == Op::Set || o.op == Op::Accumulator || is_mask(o.dtype))
        lane = facts_[o.src[s]].lane;
      else if (o.dtype != kVoid && o.op != Op::Fold)
        lane = o.dtype.bytes();
      if (is_mask(o.dtype) && o.op != Op::Set && facts_[i].lane != 0) lane = facts_[i].lane;
      if (lane != 0) facts_[o.src[s]].lane = static_cast<uint8_t>(lane);
    }
  }
  for (LinearId i = 0; i < program_.ops.size(); ++i) {
    const DType d = op(i).dtype;
    if (is_mask(d) && (facts_[i].lane == 0 || facts_[i].lane * d.lanes > 32))
      facts_[i].lane =
          static_cast<uint8_t>(std::min<int64_t>(4, 32 / std::min<int64_t>(32, d.lanes)));
  }
}

void Selector::select_op(LinearId id) {
  const LinearOp& o = op(id);
  const int64_t limit = avx512_ ? 64 : 32;
  if (o.dtype != kVoid && o.dtype.lanes * o.dtype.bytes() > limit)
    unsupported("does not fit a register");
  if ((o.dtype.lanes & (o.dtype.lanes - 1)) != 0) unsupported("lanes are not a power of two");
  switch (o.op) {
    case Op::Const:
      break;  // made where it is used
    case Op::Param:
    case Op::Scratch:
    case Op::Variable:
    case Op::LaunchArg:
      return select_entry_value(id);
    case Op::Address:
      return select_address(id);
    case Op::Load:
      return select_load(id);
    case Op::Store:
      return select_store(id);
    case Op::Loop:
      return select_loop(id);
    case Op::EndLoop:
      return select_end_loop(id);
    case Op::If:
      return select_if(id);
    case Op::EndIf:
      return select_end_if();
    case Op::Accumulator:
      return select_accumulator(id);
    case Op::Set:
      return select_set(id);
    case Op::Broadcast:
      return select_broadcast(id);
    case Op::Ramp:
      return select_ramp(id);
    case Op::LaneRange:
      return select_lane_range(id);
    case Op::Fold:
      return select_fold(id);
    case Op::Dot:
      return select_dot(id);
    case Op::Prefetch:
      return select_prefetch(id);
    case Op::Check:
      return select_check(id);
    case Op::Poll:
      return select_poll();
    default:
      if (!has(o.op, kElementwise) || !legal_in(o.op, kLinearStage))
        unsupported("is no op of a linear program");
      return select_elementwise(id);
  }
}

void Selector::select_elementwise(LinearId id) {
  const LinearOp& o = op(id);
  switch (o.op) {
    case Op::Cast:
      return select_cast(id);
    case Op::Bitcast:
      return select_bitcast(id);
    case Op::Where:
      return select_where(id);
    case Op::Fma:
      return select_fma(id);
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal:
    case Op::NotEqual:
      return select_compare(id);
    default:
      break;
  }
  if (o.count == 2) return select_binary(id);
  if (is_mask(o.dtype)) return select_mask_logic(id);
  define(id, unary(o.op, o.dtype, use(o.src[0])), true);
}

int64_t Selector::const_value(LinearId id) const {
  const LinearOp& o = op(id);
  return int_of(o.dtype.element(), static_cast<uint64_t>(o.imm));
}

VReg Selector::target_of(LinearId id) {
  return facts_[id].target == kNoTarget ? kNoReg : values_[facts_[id].target].reg;
}

Inst& Selector::emit(Opcode opcode, int64_t width, VReg dst, VReg a, VReg b, VReg c) {
  Inst& i = out_.code.emplace_back();
  i.op = opcode;
  i.width = static_cast<uint8_t>(width);
  i.width2 = i.width;
  i.dst = dst;
  i.src = {a, b, c};
  i.origin = at_;
  return i;
}

void Selector::put(Inst& inst, size_t at, const Operand& b) {
  if (b.is_imm) {
    inst.flags |= kUseImm;
    inst.imm = b.imm;
  } else if (b.reg != kNoReg) {
    inst.src[at] = b.reg;
  } else {
    inst.mem = b.mem;
  }
}

VReg Selector::rr(Opcode opcode, int64_t width, VReg a, int64_t width2, VReg dst) {
  dst = or_vec(dst, width_for(width));
  Inst& i = emit(opcode, width, dst, a);
  if (width2) i.width2 = static_cast<uint8_t>(width2);
  return dst;
}

VReg Selector::rri(Opcode opcode, int64_t width, VReg a, int64_t imm, VReg dst) {
  dst = or_vec(dst, width);
  emit(opcode, width, dst, a).imm = imm;
  return dst;
}

VReg Selector::rrm(Opcode opcode, int64_t width, VReg a, const Operand& b, VReg dst) {
  dst = or_vec(dst, width);
  put(emit(opcode, width, dst, a), 1, b);
  return dst;
}

VReg Selector::rrmi(Opcode opcode, int64_t width, VReg a, const Operand& b, int64_t imm, VReg dst) {
  dst = or_vec(dst, width);
  Inst& i = emit(opcode, width, dst, a);
  put(i, 1, b);
  i.imm = imm;
  return dst;
}

VReg Selector::krm(Opcode opcode, int64_t width, VReg a, const Operand& b, int64_t imm) {
  const VReg dst = mask_reg();
  Inst& i = emit(opcode, width, dst, a);
  put(i, 1, b);
  i.imm = imm;
  return dst;
}

VReg Selector::move(RegClass cls, int64_t width, VReg from, VReg dst) {
  if (dst == kNoReg) dst = out_.add_reg(cls, cls == RegClass::Vec ? width : 8);
  const Opcode opcode = cls == RegClass::Int   ? Opcode::IMove
                        : cls == RegClass::Vec ? Opcode::VMove
                                               : Opcode::KMove;
  emit(opcode, width, dst, from);
  return dst;
}

RegClass Selector::class_of(DType d) const {
  if (in_int(d)) return RegClass::Int;
  return is_mask(d) && avx512_ ? RegClass::Mask : RegClass::Vec;
}

VReg Selector::use(LinearId id) {
  Value& v = values_[id];
  if (is_const(id)) {
    const LinearOp& o = op(id);
    if (in_int(o.dtype)) return int_const(const_value(id));
    return vector_const(o.dtype, static_cast<uint64_t>(o.imm));
  }
  if (v.deferred) emit_load(id);
  invariant(values_[id].reg != kNoReg, "a linear value is made before its use");
  return values_[id].reg;
}

void Selector::set(LinearId id, VReg reg, int64_t lane) {
  values_[id].reg = reg;
  values_[id].lane = static_cast<uint8_t>(lane);
}

// The value of `id` is in `reg`.  If `reg` may be an operand's own register, an accumulator's is
// copied: its value would change under the new name.
void Selector::define(LinearId id, VReg reg, bool may_alias) {
  const LinearOp& o = op(id);
  if (may_alias && reg != target_of(id))
    for (size_t s = 0; s < o.count; ++s)
      if (source(o, s).op == Op::Accumulator && values_[o.src[s]].reg == reg) {
        reg = move(class_of(o.dtype), in_int(o.dtype) ? 8 : width_of(o.dtype), reg);
        break;
      }
  set(id, reg, mask_lane(id));
}

Operand Selector::use_operand(LinearId id) {
  const DType d = op(id).dtype;
  if (!in_int(d)) return use_vector_operand(id);
  if (is_const(id)) {
    int64_t value = const_value(id);
    if (int_width(d) == 4) value = static_cast<int32_t>(value);
    if (value == static_cast<int32_t>(value)) return Operand::immediate(value);
  }
  if (values_[id].deferred && d.bytes() >= 4) {
    const LinearOp& o = op(id);
    return Operand(address(o.src[0], o.src[1], d.bytes(), o.imm));
  }
  return use(id);
}

// Memory where the load is pending and fills the register, or is the one lane of a scalar op.
Operand Selector::use_vector_operand(LinearId id) {
  const LinearOp& o = op(id);
  if (values_[id].deferred && o.count == 2 && !o.dtype.is_bool() && o.dtype.bytes() >= 4) {
    const int64_t bytes = o.dtype.lanes * o.dtype.bytes();
    if (o.dtype.lanes == 1 || (bytes >= 16 && o.aux == 1))
      return Operand(address(o.src[0], o.src[1], o.dtype.bytes(), o.imm));
  }
  return use(id);
}

uint32_t Selector::pool_lane(uint64_t bits, int64_t lane) {
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

uint32_t Selector::pool_bytes(std::vector<std::byte> bytes) {
  const std::string key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto [at, fresh] = byte_pool_.try_emplace(key, static_cast<uint32_t>(out_.pool.size()));
  if (fresh) {
    PoolConstant c;
    c.bytes = std::move(bytes);
    out_.pool.push_back(std::move(c));
  }
  return at->second;
}

VReg Selector::pool_reg(uint32_t pool, int64_t width) {
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
  i.origin = at_;
  preheaders_[loop_].push_back(i);
  return reg;
}

VReg Selector::int_const(int64_t value) {
  const VReg reg = int_reg();
  out_.regs[reg].immediate = true;
  out_.regs[reg].value = value;
  emit(Opcode::IMoveImm, 8, reg).imm = value;
  return reg;
}

VReg Selector::vector_const(DType dtype, uint64_t bits) {
  return lanes_const(bits, dtype.bytes(), width_of(dtype));
}

void Selector::splice_preheaders() {
  std::vector<Inst> code;
  size_t size = out_.code.size();
  for (const auto& p : preheaders_) size += p.size();
  code.reserve(size);
  for (const Inst& i : out_.code) {
    if (i.op != Opcode::Preheader) {
      code.push_back(i);
      continue;
    }
    const auto& p = preheaders_[static_cast<size_t>(i.imm)];
    code.insert(code.end(), p.begin(), p.end());
  }
  out_.code = std::move(code);
}

// Removes instructions whose results nobody reads.  What is written more than once may be read
// earlier in the program than it is written (in the next iteration), so any read keeps all its
// writes.
void Selector::drop_dead() {
  std::vector<uint8_t> writes(out_.regs.size(), 0), read(out_.regs.size(), 0);
  const auto mark_sources = [](const Inst& inst, std::vector<uint8_t>& read_by) {
    for (VReg r : {inst.src[0], inst.src[1], inst.src[2], inst.mask, inst.mem.base, inst.mem.index})
      if (r != kNoReg) read_by[r] = 1;
  };
  std::vector<uint8_t> ever(out_.regs.size(), 0);
  for (const Inst& inst : out_.code) {
    if (inst.dst != kNoReg && writes[inst.dst] < 2) ++writes[inst.dst];
    mark_sources(inst, ever);
  }
  for (size_t r = 0; r < read.size(); ++r) read[r] = writes[r] > 1 && ever[r];
  size_t kept = out_.code.size();
  for (size_t i = out_.code.size(); i-- > 0;) {
    const Inst& inst = out_.code[i];
    if (!(info(inst.op).flags & kEffectful) && inst.dst != kNoReg && !read[inst.dst]) continue;
    mark_sources(inst, read);
    if (--kept != i) out_.code[kept] = out_.code[i];
  }
  out_.code.erase(out_.code.begin(), out_.code.begin() + static_cast<std::ptrdiff_t>(kept));
}

}  // namespace tiny::x86
