// Addresses, loads and stores.
#include <algorithm>
#include <cstdlib>

#include "ir/picked_lanes.h"
#include "render/x86/selector.h"

namespace tiny::x86 {

namespace {

int64_t wrapping_add_product(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b) * static_cast<uint64_t>(c));
}

bool is_scale(int64_t n) {
  return n == 1 || n == 2 || n == 4 || n == 8;
}

bool fits32(int64_t n) {
  return n == static_cast<int32_t>(n);
}

}  // namespace

// What is left of `index` when constant terms are added to `constant`; kNoIndex if nothing is.
LinearId Selector::peel(LinearId index, int64_t& constant) const {
  for (;;) {
    const LinearOp& o = op(index);
    if (o.op == Op::Const) {
      constant = wrapping_add_product(constant, o.imm, 1);
      return kNoIndex;
    }
    if (o.op != Op::Add && o.op != Op::Sub) return index;
    size_t term = 1;
    if (!is_const(o.src[1])) {
      if (o.op == Op::Sub || !is_const(o.src[0])) return index;
      term = 0;
    }
    // The other term is read here, later than the sum was made: it must not have changed.
    if (source(o, 1 - term).op == Op::Accumulator) return index;
    constant = wrapping_add_product(constant, op(o.src[term]).imm, o.op == Op::Sub ? -1 : 1);
    index = o.src[1 - term];
  }
}

Mem Selector::address(LinearId base, LinearId index, int64_t size, int64_t imm) {
  int64_t constant = 0;
  LinearId rest = peel(index, constant);
  int64_t disp = wrapping_add_product(imm, constant, size);
  Mem m;
  m.kind = MemKind::Address;
  m.base = use(base);
  disp = wrapping_add_product(disp, values_[base].disp, 1);
  if (rest != kNoIndex) {
    int64_t scale = size;
    const LinearOp& o = op(rest);
    if (o.op == Op::Mul && is_const(o.src[1]) && source(o, 0).op != Op::Accumulator &&
        is_scale(op(o.src[1]).imm) && is_scale(scale * op(o.src[1]).imm)) {
      scale *= op(o.src[1]).imm;
      rest = o.src[0];
    }
    m.index = use(rest);
    m.scale = static_cast<uint8_t>(scale);
  }
  if (!fits32(disp)) {
    m.base = int_plain(Opcode::IAdd, 8, m.base, Operand(int_const(disp)));
    disp = 0;
  }
  m.disp = static_cast<int32_t>(disp);
  return m;
}

void Selector::select_address(LinearId id) {
  const LinearOp& o = op(id);
  int64_t constant = 0;
  const LinearId rest = peel(o.src[1], constant);
  VReg base = use(o.src[0]);
  const int64_t disp = wrapping_add_product(values_[o.src[0]].disp, constant, o.imm);
  const bool base_changes = source(o, 0).op == Op::Accumulator;
  if (rest == kNoIndex) {
    set(id, base_changes ? move(RegClass::Int, 8, base) : base);
    values_[id].disp = disp;
    return;
  }
  const AddressKey key{o.src[0], rest, o.imm};
  const bool shared = !base_changes && op(rest).op != Op::Accumulator;
  const auto known = shared ? formed_.find(key) : formed_.end();
  VReg reg = kNoReg;
  if (known != formed_.end()) {
    reg = known->second;
  } else {
    reg = int_reg();
    Mem m;
    m.kind = MemKind::Address;
    m.base = base;
    if (is_scale(o.imm)) {
      m.index = use(rest);
      m.scale = static_cast<uint8_t>(o.imm);
    } else {
      const Operand unit = fits32(o.imm) ? Operand::immediate(o.imm) : Operand(int_const(o.imm));
      m.index = int_plain(Opcode::IMul, 8, use(rest), unit);
    }
    emit(Opcode::ILea, 8, reg).mem = m;
    if (shared) {
      formed_.emplace(key, reg);
      formed_at_.emplace_back(blocks_.size(), key);
    }
  }
  set(id, reg);
  values_[id].disp = disp;
}

void Selector::select_load(LinearId id) {
  const LinearOp& o = op(id);
  const Facts& f = facts_[id];
  bool steady = true;  // an accumulator as an index may be set before the user comes
  for (size_t s = 0; s < o.count; ++s) steady = steady && source(o, s).op != Op::Accumulator;
  if (f.uses == 1 && steady) {
    const Op user = op(f.user).op;
    const bool user_ends_epoch =
        user == Op::Store || user == Op::Set || user == Op::Loop || user == Op::If;
    if (facts_[f.user].epoch == f.epoch + (user_ends_epoch ? 1 : 0)) {
      values_[id].deferred = true;
      return;
    }
  }
  emit_load(id);
}

void Selector::emit_load(LinearId id) {
  LinearOp o = op(id);
  values_[id].deferred = false;
  const DType logical = o.dtype;
  if (is_mask(logical)) o.dtype = kUInt8.with_lanes(logical.lanes);
  const int64_t size = o.dtype.bytes();
  const bool gather = source(o, 1).dtype.lanes > 1;
  Mem mem;
  if (gather) {
    mem.kind = MemKind::Address;
    mem.base = use(o.src[0]);
    use(o.src[1]);  // not first inside a branch
    const int64_t disp = wrapping_add_product(o.imm, values_[o.src[0]].disp, 1);
    if (!fits32(disp)) mem.base = int_plain(Opcode::IAdd, 8, mem.base, Operand(int_const(disp)));
    mem.disp = fits32(disp) ? static_cast<int32_t>(disp) : 0;
  } else {
    mem = address(o.src[0], o.src[1], size, o.imm);
  }
  const VReg mask = o.count > 2 ? mask_in(o.src[2], size) : kNoReg;
  const bool lanes_by_mask = avx512_ || size >= 4;
  VReg reg = kNoReg;
  if (gather && size >= 4)
    reg = load_gather(o, mem, mask);
  else if (!gather && loads_by_permuting(o.dtype, o.aux, mask != kNoReg))
    reg = load_strided(o, mem, mask);
  else if (gather || (o.dtype.lanes > 1 && o.aux != 1) || (mask != kNoReg && !lanes_by_mask))
    reg = load_lanes(o, mem, mask == kNoReg ? kNoReg : mask_bits(mask, o.dtype.lanes, size));
  else if (mask != kNoReg)
    reg = load_masked(o.dtype, mem, mask);
  else
    reg = load_plain(o.dtype, mem);
  if (is_mask(logical)) {
    const int64_t lane = mask_lane(id);
    return set(id, mask_from_bytes(reg, logical.lanes, lane), lane);
  }
  set(id, reg);
}

VReg Selector::load_plain(DType dtype, const Mem& mem, VReg dst) {
  const int64_t bytes = dtype.lanes * dtype.bytes();
  if (in_int(dtype)) {
    dst = or_int(dst);
    Inst& i = emit(Opcode::ILoad, int_width(dtype), dst);
    i.width2 = static_cast<uint8_t>(bytes);
    if (dtype.is_signed()) i.flags |= kSigned;
    i.mem = mem;
    return dst;
  }
  dst = or_vec(dst, width_for(bytes));
  emit(Opcode::VLoad, bytes, dst).mem = mem;
  return dst;
}

// Lanes that a register has and the value has not must not be touched by a masked access.
VReg Selector::limit_mask(VReg mask, int64_t lanes, int64_t lane) {
  if (lanes * lane >= 16) return mask;
  const auto bits = (int64_t{1} << lanes) - 1;
  if (avx512_) {
    const VReg all = mask_from_bits(int_const(bits), lanes, lane);
    return mask_binary(Op::And, 8, mask, all);
  }
  std::vector<std::byte> bytes(16, std::byte{0});
  for (int64_t i = 0; i < lanes * lane; ++i) bytes[static_cast<size_t>(i)] = std::byte{0xFF};
  return mask_binary(Op::And, 16, mask, pool_reg(pool_bytes(std::move(bytes)), 16));
}

VReg Selector::load_masked(DType dtype, const Mem& mem, VReg mask) {
  const int64_t size = dtype.bytes(), width = width_of(dtype);
  mask = limit_mask(mask, dtype.lanes, size);
  const VReg dst = vec_reg(width);
  Inst& i = emit(avx512_ ? Opcode::VLoad : Opcode::VMaskLoad, width, dst);
  i.width2 = static_cast<uint8_t>(size);
  i.mem = mem;
  if (avx512_) {
    i.mask = mask;
    i.flags |= kZeroing;
  } else {
    i.src[0] = mask;
  }
  return dst;
}

// Where lane `lane` of a strided access or a gather lies.
Mem Selector::lane_address(const LinearOp& o, DType dtype, const Mem& mem, int64_t lane) {
  Mem m = mem;
  if (source(o, 1).dtype.lanes > 1) {
    m.index = lane_bits(use(o.src[1]), width_of(source(o, 1).dtype), 8, lane);
    m.scale = static_cast<uint8_t>(dtype.bytes());
    return m;
  }
  return offset_by(mem, lane * o.aux * dtype.bytes());
}

Mem Selector::offset_by(const Mem& mem, int64_t bytes) {
  Mem m = mem;
  const int64_t disp = m.disp + bytes;
  if (fits32(disp)) {
    m.disp = static_cast<int32_t>(disp);
    return m;
  }
  m.base = int_plain(Opcode::IAdd, 8, mem.base, Operand(int_const(disp)));
  m.disp = 0;
  return m;
}

void Selector::skip_unless(VReg bits, int64_t lane, uint32_t label) {
  const VReg shifted = int_plain(Opcode::IShr, 8, bits, Operand::immediate(lane));
  const VReg bit = int_plain(Opcode::IAnd, 4, shifted, Operand::immediate(1));
  emit(Opcode::JumpIfZero, 4, kNoReg, bit).label = label;
}

// Lane by lane; under `bits`, one bit a lane, if there are any.
VReg Selector::load_lanes(const LinearOp& o, const Mem& mem, VReg bits) {
  const int64_t size = o.dtype.bytes(), lanes = o.dtype.lanes, in_piece = 16 / size;
  std::vector<VReg> pieces;
  for (int64_t l = 0; l < lanes; ++l) {
    if (l % in_piece == 0) {
      pieces.push_back(vec_reg(16));
      if (bits == kNoReg && size >= 4) {  // the rest of the register becomes zero
        emit(Opcode::VLoad, size, pieces.back()).mem = lane_address(o, o.dtype, mem, l);
        continue;
      }
      emit(Opcode::VZero, 16, pieces.back());
    }
    const uint32_t label = bits == kNoReg ? 0 : out_.labels++;
    if (bits != kNoReg) skip_unless(bits, l, label);
    const Mem m = lane_address(o, o.dtype, mem, l);
    Inst& i = emit(Opcode::VPinsr, 16, pieces.back(), pieces.back());
    i.width2 = static_cast<uint8_t>(size);
    i.imm = l % in_piece;
    i.mem = m;
    if (bits != kNoReg) emit(Opcode::Label, 0).label = label;
  }
  return join(width_of(o.dtype), pieces);
}

// Whether lanes this far apart are taken out of whole registers.  What lies between the first and
// the last lane is in the same buffer.
bool Selector::loads_by_permuting(DType dtype, int32_t stride, bool masked) const {
  const int64_t size = dtype.bytes(), bytes = dtype.lanes * size;
  if (dtype.lanes == 1 || stride == 1 || bytes < 16) return false;
  if (!avx512_) return stride == 2 && size == 4 && !masked;
  return are_picked(std::abs(stride), dtype.lanes, size) && (!masked || stride > 0);
}

// The lanes' bits from `first` on, each at its place of `places`.
VReg Selector::spread_mask(VReg bits, int64_t first, uint64_t places, int64_t n, int64_t size) {
  const VReg mine = int_plain(Opcode::IShr, 8, bits, Operand::immediate(first));
  const VReg spread = int_reg();
  emit(Opcode::IDeposit, 8, spread, mine, int_const(static_cast<int64_t>(places)));
  return mask_from_bits(spread, n, size);
}

// As many loads as the stride, each a register's worth between the first lane and the last; then
// the lanes are picked out of two registers at a time.
VReg Selector::load_strided(const LinearOp& o, Mem mem, VReg mask) {
  const int64_t size = o.dtype.bytes(), n = o.dtype.lanes, step = std::abs(o.aux),
                width = width_of(o.dtype);
  if (o.aux < 0) mem = lane_address(o, o.dtype, mem, n - 1);
  if (!avx512_) return load_every_second_avx2(o.dtype, mem);
  const auto element = [&](int64_t lane) { return (o.aux < 0 ? n - 1 - lane : lane) * step; };
  const auto start = [&](int64_t load) { return std::min(load * n, (n - 1) * (step - 1)); };
  const auto load_of = [&](int64_t lane) { return element(lane) / n; };
  const std::optional<uint64_t> known = mask == kNoReg ? std::nullopt : constant_mask(o.src[2]);
  const VReg bits = mask == kNoReg || known ? kNoReg : mask_bits(mask, n, size);
  VReg picked = kNoReg;
  for (int64_t load = 0; load < step; ++load) {
    const Mem m = offset_by(mem, start(load) * size);
    const VReg whole = vec_reg(width);
    VReg under = kNoReg;
    if (mask != kNoReg) {
      uint64_t places = 0, wanted = 0;
      int64_t first = n;
      for (int64_t l = n - 1; l >= 0; --l)
        if (load_of(l) == load) {
          const uint64_t place = uint64_t{1} << (element(l) - start(load));
          places |= place;
          if (known && (*known >> l & 1)) wanted |= place;
          first = l;
        }
      under =
          known ? make_constant_mask(wanted, n, size) : spread_mask(bits, first, places, n, size);
    }
    Inst& i = emit(Opcode::VLoad, width, whole);
    i.mem = m;
    if (under != kNoReg) {
      i.mask = under;
      i.flags |= kZeroing;
      i.width2 = static_cast<uint8_t>(size);
    }
    if (load == 0) picked = move(RegClass::Vec, width, whole);
    if (load == 0 && step > 1) continue;
    std::vector<std::byte> numbers(static_cast<size_t>(width), std::byte{0});
    for (int64_t l = 0; l < n; ++l) {
      int64_t from = load <= 1 ? element(l) : l;  // picked before, or still in the first load
      if (load > 0 && load_of(l) == load) from = n + element(l) - start(load);
      if (load_of(l) > load) from = 0;
      numbers[static_cast<size_t>(l * size)] = static_cast<std::byte>(from);
    }
    const VReg index = pool_reg(pool_bytes(std::move(numbers)), width);
    emit(Opcode::VPermute2, width, picked, kNoReg, index, whole).width2 =
        static_cast<uint8_t>(size);
  }
  return picked;
}

// Even lanes of the first load, odd lanes of one that ends with the last lane.
VReg Selector::load_every_second_avx2(DType dtype, const Mem& mem) {
  const int64_t width = width_of(dtype);
  constexpr int64_t kEvenOdd = 0xD8;
  const VReg low = load_plain(dtype, mem);
  const VReg high = load_plain(dtype, offset_by(mem, (dtype.lanes - 1) * dtype.bytes()));
  const VReg mixed = rrmi(Opcode::vshufps, width, low, high, kEvenOdd);
  return width == 16 ? mixed : rri(Opcode::vpermq, width, mixed, kEvenOdd);
}

VReg Selector::load_gather(const LinearOp& o, const Mem& mem, VReg mask) {
  const int64_t size = o.dtype.bytes(), lanes = o.dtype.lanes;
  const VReg index = use(o.src[1]);
  VReg under = kNoReg;  // the instruction clears it
  if (mask != kNoReg) {
    under = limit_mask(mask, lanes, size);
    if (under == mask)
      under = move(avx512_ ? RegClass::Mask : RegClass::Vec, width_of(o.dtype), mask);
  } else if (avx512_) {
    under = mask_from_bits(int_const((int64_t{1} << lanes) - 1), lanes, size);
  } else if (lanes * size >= 16) {
    under = move(RegClass::Vec, width_of(o.dtype), lanes_const(~uint64_t{0}, 1, width_of(o.dtype)));
  } else {
    under = limit_mask(lanes_const(~uint64_t{0}, 1, 16), lanes, size);
  }
  const VReg dst = vec_reg(width_of(o.dtype));
  emit(Opcode::VZero, 16, dst);
  Inst& i = emit(Opcode::VGather, width_for(8 * lanes), dst, kNoReg, index, under);
  i.width2 = static_cast<uint8_t>(size);
  i.mem = mem;
  i.mem.scale = static_cast<uint8_t>(size);
  return dst;
}

void Selector::select_store(LinearId id) {
  if (squares_.contains(id)) return store_across(id);
  const LinearOp& o = op(id);
  DType d = source(o, 2).dtype;
  VReg value = kNoReg;
  if (is_mask(d)) {
    const int64_t lane = mask_lane(o.src[2]);
    value = mask_to_bytes(mask_in(o.src[2], lane), d.lanes, lane);
    d = kUInt8.with_lanes(d.lanes);
  } else {
    value = use(o.src[2]);
  }
  const int64_t size = d.bytes();
  const bool scatter = source(o, 1).dtype.lanes > 1;
  const VReg mask = o.count > 3 ? mask_in(o.src[3], size) : kNoReg;
  Mem mem;
  if (scatter) {
    mem.kind = MemKind::Address;
    mem.base = use(o.src[0]);
    use(o.src[1]);  // not first inside a branch
    const int64_t disp = wrapping_add_product(o.imm, values_[o.src[0]].disp, 1);
    if (!fits32(disp)) mem.base = int_plain(Opcode::IAdd, 8, mem.base, Operand(int_const(disp)));
    mem.disp = fits32(disp) ? static_cast<int32_t>(disp) : 0;
    if (avx512_ && size >= 4) return store_scatter(o, d, mem, value, mask);
  } else {
    mem = address(o.src[0], o.src[1], size, o.imm);
  }
  if (scatter || (d.lanes > 1 && o.aux != 1) || (mask != kNoReg && !avx512_ && size < 4))
    return store_lanes(o, d, mem, value, mask == kNoReg ? kNoReg : mask_bits(mask, d.lanes, size));
  if (mask != kNoReg) return store_masked(d, mem, value, mask);
  const int64_t bytes = d.lanes * size;
  if (!o.bypass || bytes < 16) return store_plain(d, mem, value);
  emit(Opcode::VStoreBypass, bytes, int_reg(), value).mem = mem;
  bypasses_ = true;
}

void Selector::select_prefetch(LinearId id) {
  const LinearOp& o = op(id);
  const Mem mem = address(o.src[0], o.src[1], o.aux, o.imm);
  emit(Opcode::Prefetch, 8).mem = mem;
}

void Selector::store_plain(DType dtype, const Mem& mem, VReg value) {
  const int64_t bytes = dtype.lanes * dtype.bytes();
  Inst& i = emit(in_int(dtype) ? Opcode::IStore : Opcode::VStore, bytes, kNoReg, value);
  i.mem = mem;
}

void Selector::store_masked(DType dtype, const Mem& mem, VReg value, VReg mask) {
  mask = limit_mask(mask, dtype.lanes, dtype.bytes());
  Inst& i = emit(avx512_ ? Opcode::VStore : Opcode::VMaskStore, width_of(dtype), kNoReg);
  i.width2 = static_cast<uint8_t>(dtype.bytes());
  i.mem = mem;
  if (avx512_) {
    i.src[0] = value;
    i.mask = mask;
  } else {
    i.src[0] = mask;
    i.src[1] = value;
  }
}

void Selector::store_lanes(const LinearOp& o, DType dtype, const Mem& mem, VReg value, VReg bits) {
  for (int64_t l = 0; l < dtype.lanes; ++l) {
    const uint32_t label = bits == kNoReg ? 0 : out_.labels++;
    if (bits != kNoReg) skip_unless(bits, l, label);
    const Mem m = lane_address(o, dtype, mem, l);
    const VReg lane = lane_bits(value, width_of(dtype), dtype.bytes(), l);
    emit(Opcode::IStore, dtype.bytes(), kNoReg, lane).mem = m;
    if (bits != kNoReg) emit(Opcode::Label, 0).label = label;
  }
}

void Selector::store_scatter(const LinearOp& o, DType dtype, const Mem& mem, VReg value,
                             VReg mask) {
  const int64_t size = dtype.bytes(), lanes = dtype.lanes;
  VReg under = mask_from_bits(int_const((int64_t{1} << lanes) - 1), lanes, size);
  if (mask != kNoReg) under = mask_binary(Op::And, 8, mask, under);
  Inst& i = emit(Opcode::VScatter, width_for(8 * lanes), kNoReg, value, use(o.src[1]), under);
  i.width2 = static_cast<uint8_t>(size);
  i.mem = mem;
  i.mem.scale = static_cast<uint8_t>(size);
}

}  // namespace tiny::x86
