// Between lanes: broadcasts, ramps, folds, and ops done lane by lane.
#include <bit>

#include "render/x86/selector.h"

namespace tiny::x86 {

namespace {

constexpr Opcode kSpread[] = {Opcode::vpbroadcastb, Opcode::vpbroadcastw, Opcode::vbroadcastss,
                              Opcode::vbroadcastsd};

size_t log_of(int64_t size) {
  return static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(size)));
}

}  // namespace

// Every lane of `size` bytes becomes the lowest of `low`.
VReg Selector::spread(int64_t size, int64_t width, VReg low) {
  if (size == 8 && width == 16) return rrm(Opcode::vpunpcklqdq, 16, low, low);
  return rr(kSpread[log_of(size)], width, low, 16);
}

VReg Selector::broadcast(DType dtype, VReg scalar) {
  const int64_t width = width_of(dtype), size = dtype.bytes();
  if (is_mask(dtype)) {
    const VReg all = int_reg();
    emit(Opcode::INeg, 8, all, scalar);
    if (avx512_) return mask_from_bits(all, dtype.lanes, 0);
    const VReg low = vec_reg(16);
    emit(Opcode::VFromInt, 16, low, all).width2 = 8;
    return spread(8, 32, low);
  }
  if (dtype.is_float()) return spread(size, width, scalar);
  if (avx512_) {
    const VReg dst = vec_reg(width);
    emit(Opcode::VBroadcastInt, width, dst, scalar).width2 = static_cast<uint8_t>(size);
    return dst;
  }
  const VReg low = vec_reg(16);
  emit(Opcode::VFromInt, 16, low, scalar).width2 = size == 8 ? 8 : 4;
  return spread(size, width, low);
}

void Selector::select_broadcast(LinearId id) {
  const LinearOp& o = op(id);
  const LinearOp& from = source(o, 0);
  const int64_t width = width_of(o.dtype), size = o.dtype.bytes();
  if (is_mask(o.dtype) && is_const(o.src[0])) return;  // made where it is used
  if (is_const(o.src[0])) return set(id, vector_const(o.dtype, static_cast<uint64_t>(from.imm)));
  if (values_[o.src[0]].deferred && from.op == Op::Load && !o.dtype.is_bool()) {
    const VReg dst = vec_reg(width);
    const Mem m = address(from.src[0], from.src[1], size, from.imm);
    const bool pair = size == 8 && width == 16;
    emit(pair ? Opcode::vpbroadcastq : kSpread[log_of(size)], width, dst).mem = m;
    return set(id, dst);
  }
  set(id, broadcast(o.dtype, use(o.src[0])), mask_lane(id));
}

VReg Selector::iota(DType dtype, uint64_t start, int64_t step) {
  const auto size = static_cast<size_t>(dtype.bytes());
  std::vector<std::byte> bytes(static_cast<size_t>(width_of(dtype)), std::byte{0});
  for (size_t l = 0; l < dtype.lanes; ++l) {
    const uint64_t value = start + l * static_cast<uint64_t>(step);
    for (size_t b = 0; b < size; ++b)
      bytes[l * size + b] = static_cast<std::byte>(value >> (8 * b));
  }
  return pool_reg(pool_bytes(std::move(bytes)), width_of(dtype));
}

void Selector::select_ramp(LinearId id) {
  const LinearOp& o = op(id);
  if (o.dtype.lanes == 1) return define(id, use(o.src[0]), true);
  if (is_const(o.src[0]))
    return set(id, iota(o.dtype, static_cast<uint64_t>(source(o, 0).imm), o.imm));
  const VReg steps = iota(o.dtype, 0, o.imm);
  set(id, vector_int_binary(Op::Add, o.dtype, broadcast(o.dtype, use(o.src[0])), steps, kNoReg));
}

VReg Selector::upper_half(DType dtype, VReg a) {
  const int64_t half = dtype.lanes * dtype.bytes() / 2;
  if (half < 16) return rri(Opcode::vpsrldq, 16, a, half);
  const VReg dst = vec_reg(half);
  Inst& i = emit(Opcode::VExtract, half, dst, a);
  i.width2 = static_cast<uint8_t>(2 * half);
  i.imm = 1;
  return dst;
}

VReg Selector::fold_by_lanes(Op op, DType dtype, VReg a) {
  std::vector<VReg> lanes;
  for (int64_t l = 0; l < dtype.lanes; ++l) lanes.push_back(extract(dtype, a, l));
  for (size_t n = lanes.size() / 2; n > 0; n /= 2)
    for (size_t l = 0; l < n; ++l) lanes[l] = binary(op, dtype.element(), lanes[l], lanes[l + n]);
  return lanes[0];
}

VReg Selector::fold(Op op, DType dtype, VReg a) {
  while (dtype.lanes > 1) {
    const DType half = dtype.with_lanes(dtype.lanes / 2);
    if (in_int(half)) return binary(op, half, extract(dtype, a, 0), extract(dtype, a, 1));
    const VReg folded = binary(op, half, a, upper_half(dtype, a));
    if (folded == kNoReg) return fold_by_lanes(op, dtype, a);
    a = folded;
    dtype = half;
  }
  return a;
}

void Selector::select_fold(LinearId id) {
  const LinearOp& o = op(id);
  const DType d = source(o, 0).dtype;
  const Op combine = static_cast<Op>(o.aux);
  if (is_mask(d)) {
    const int64_t lane = mask_lane(o.src[0]);
    return set(id, fold_mask(combine, d.lanes, mask_in(o.src[0], lane), lane));
  }
  set(id, fold(combine, d, use(o.src[0])));
}

// 16 bytes of a vector of `width`.
VReg Selector::piece_of(VReg vector, int64_t width, int64_t piece) {
  const VReg part = vec_reg(16);
  Inst& i = emit(Opcode::VExtract, 16, part, vector);
  i.width2 = static_cast<uint8_t>(width);
  i.imm = piece;
  return part;
}

// The bits of one lane in an integer register, zero-extended.
VReg Selector::lane_bits(VReg vector, int64_t width, int64_t size, int64_t lane) {
  const int64_t piece = lane * size / 16;
  if (piece > 0) vector = piece_of(vector, width, piece);
  const int64_t at = lane % (16 / size);
  const VReg dst = int_reg();
  Inst& i = emit(at == 0 && size >= 4 ? Opcode::VToInt : Opcode::VPextr, 16, dst, vector);
  i.width2 = static_cast<uint8_t>(size);
  i.imm = at;
  return dst;
}

VReg Selector::extract(DType dtype, VReg vector, int64_t lane) {
  const int64_t size = dtype.bytes(), width = width_of(dtype);
  if (!dtype.is_float()) {
    const VReg bits = lane_bits(vector, width, size, lane);
    return dtype.is_signed() ? canonical(dtype.element(), bits) : bits;
  }
  const int64_t piece = lane * size / 16, at = lane % (16 / size);
  if (piece > 0) vector = piece_of(vector, width, piece);
  return at == 0 ? vector : rri(Opcode::vpsrldq, 16, vector, at * size);
}

VReg Selector::join(int64_t width, const std::vector<VReg>& pieces) {
  if (width == 16) return pieces[0];
  const auto insert = [&](int64_t to, VReg low, VReg high) {
    const VReg dst = vec_reg(to);
    Inst& i = emit(Opcode::VInsert, to, dst, low, high);
    i.width2 = static_cast<uint8_t>(to / 2);
    i.imm = 1;
    return dst;
  };
  const VReg low = insert(32, pieces[0], pieces[1]);
  return width == 32 ? low : insert(64, low, insert(32, pieces[2], pieces[3]));
}

VReg Selector::assemble(DType dtype, const std::vector<VReg>& lanes) {
  const int64_t size = dtype.bytes();
  const auto in_piece = static_cast<size_t>(16 / size);
  std::vector<VReg> pieces;
  for (size_t l = 0; l < lanes.size(); ++l) {
    if (l % in_piece == 0) pieces.push_back(lanes_const(0, 4, 16));
    const VReg bits = dtype.is_float() ? lane_bits(lanes[l], 16, size, 0) : lanes[l];
    const VReg dst = vec_reg(16);
    Inst& i = emit(Opcode::VPinsr, 16, dst, pieces.back(), bits);
    i.width2 = static_cast<uint8_t>(size);
    i.imm = static_cast<int64_t>(l % in_piece);
    pieces.back() = dst;
  }
  return join(width_of(dtype), pieces);
}

// What the target cannot do to vectors is done to their lanes.
void Selector::scalarise(LinearId id) {
  const LinearOp& o = op(id);
  std::vector<VReg> lanes;
  VReg src[2] = {kNoReg, kNoReg};
  for (size_t s = 0; s < o.count; ++s) src[s] = use(o.src[s]);
  for (int64_t l = 0; l < o.dtype.lanes; ++l) {
    const VReg a = extract(source(o, 0).dtype, src[0], l);
    if (o.op == Op::Cast)
      lanes.push_back(cast_scalar(source(o, 0).dtype.element(), o.dtype.element(), a));
    else
      lanes.push_back(binary(o.op, o.dtype.element(), a, extract(source(o, 1).dtype, src[1], l)));
  }
  set(id, assemble(o.dtype, lanes));
}

}  // namespace tiny::x86
