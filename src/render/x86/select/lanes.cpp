#include "render/x86/select/lanes.h"

#include "render/x86/select/arithmetic.h"
#include "render/x86/select/integers.h"
#include "render/x86/select/masks.h"

namespace tiny::x86 {

namespace {

constexpr Opcode kSpread[] = {Opcode::vpbroadcastb, Opcode::vpbroadcastw, Opcode::vbroadcastss,
                              Opcode::vbroadcastsd};

// Every lane of `size` bytes becomes the lowest of `low`.
VReg spread(Emitter& e, int64_t size, int64_t width, VReg low) {
  if (size == 8 && width == 16) return e.rrm(Opcode::vpunpcklqdq, 16, low, low);
  return e.rr(kSpread[log_of(size)], width, low, 16);
}

}  // namespace

VReg upper_half(Emitter& e, DType dtype, VReg a) {
  const int64_t half = dtype.lanes * dtype.bytes() / 2;
  if (half < 16) return e.rri(Opcode::vpsrldq, 16, a, half);
  const VReg dst = e.vec_reg(half);
  Inst& i = e.emit(Opcode::VExtract, half, dst, a);
  i.width2 = static_cast<uint8_t>(2 * half);
  i.imm = 1;
  return dst;
}

Opcode broadcast_opcode(int64_t size, int64_t width) {
  return size == 8 && width == 16 ? Opcode::vpbroadcastq : kSpread[log_of(size)];
}

VReg broadcast(Emitter& e, DType dtype, VReg scalar) {
  const int64_t width = width_of(dtype), size = dtype.bytes();
  if (is_mask(dtype)) {
    const VReg all = e.int_reg();
    e.emit(Opcode::INeg, 8, all, scalar);
    if (e.avx512()) return mask_from_bits(e, all, dtype.lanes, 0);
    const VReg low = e.vec_reg(16);
    e.emit(Opcode::VFromInt, 16, low, all).width2 = 8;
    return spread(e, 8, 32, low);
  }
  if (dtype.is_float()) return spread(e, size, width, scalar);
  if (e.avx512()) {
    const VReg dst = e.vec_reg(width);
    e.emit(Opcode::VBroadcastInt, width, dst, scalar).width2 = static_cast<uint8_t>(size);
    return dst;
  }
  const VReg low = e.vec_reg(16);
  e.emit(Opcode::VFromInt, 16, low, scalar).width2 = size == 8 ? 8 : 4;
  return spread(e, size, width, low);
}

VReg iota(Emitter& e, DType dtype, uint64_t start, int64_t step) {
  const auto size = static_cast<size_t>(dtype.bytes());
  std::vector<std::byte> bytes(static_cast<size_t>(width_of(dtype)), std::byte{0});
  for (size_t l = 0; l < dtype.lanes; ++l) {
    const uint64_t value = start + l * static_cast<uint64_t>(step);
    for (size_t b = 0; b < size; ++b)
      bytes[l * size + b] = static_cast<std::byte>(value >> (8 * b));
  }
  return e.pool_reg(e.pool_bytes(std::move(bytes)), width_of(dtype));
}

// 16 bytes of a vector of `width`.
VReg piece_of(Emitter& e, VReg vector, int64_t width, int64_t piece) {
  const VReg part = e.vec_reg(16);
  Inst& i = e.emit(Opcode::VExtract, 16, part, vector);
  i.width2 = static_cast<uint8_t>(width);
  i.imm = piece;
  return part;
}

// The bits of one lane in an integer register, zero-extended.
VReg lane_bits(Emitter& e, VReg vector, int64_t width, int64_t size, int64_t lane) {
  const int64_t piece = lane * size / 16;
  if (piece > 0) vector = piece_of(e, vector, width, piece);
  const int64_t at = lane % (16 / size);
  const VReg dst = e.int_reg();
  Inst& i = e.emit(at == 0 && size >= 4 ? Opcode::VToInt : Opcode::VPextr, 16, dst, vector);
  i.width2 = static_cast<uint8_t>(size);
  i.imm = at;
  return dst;
}

VReg extract(Emitter& e, DType dtype, VReg vector, int64_t lane) {
  const int64_t size = dtype.bytes(), width = width_of(dtype);
  if (!dtype.is_float()) {
    const VReg bits = lane_bits(e, vector, width, size, lane);
    return dtype.is_signed() ? canonical(e, dtype.element(), bits) : bits;
  }
  const int64_t piece = lane * size / 16, at = lane % (16 / size);
  if (piece > 0) vector = piece_of(e, vector, width, piece);
  return at == 0 ? vector : e.rri(Opcode::vpsrldq, 16, vector, at * size);
}

namespace {

VReg fold_by_lanes(Emitter& e, Op op, DType dtype, VReg a) {
  std::vector<VReg> lanes;
  for (int64_t l = 0; l < dtype.lanes; ++l) lanes.push_back(extract(e, dtype, a, l));
  for (size_t n = lanes.size() / 2; n > 0; n /= 2)
    for (size_t l = 0; l < n; ++l)
      lanes[l] = binary(e, op, dtype.element(), lanes[l], lanes[l + n]);
  return lanes[0];
}

}  // namespace

VReg fold(Emitter& e, Op op, DType dtype, VReg a) {
  while (dtype.lanes > 1) {
    const DType half = dtype.with_lanes(dtype.lanes / 2);
    if (in_int(half)) return binary(e, op, half, extract(e, dtype, a, 0), extract(e, dtype, a, 1));
    const VReg folded = binary(e, op, half, a, upper_half(e, dtype, a));
    if (folded == kNoReg) return fold_by_lanes(e, op, dtype, a);
    a = folded;
    dtype = half;
  }
  return a;
}

VReg join(Emitter& e, int64_t width, const std::vector<VReg>& pieces) {
  if (width == 16) return pieces[0];
  const auto insert = [&](int64_t to, VReg low, VReg high) {
    const VReg dst = e.vec_reg(to);
    Inst& i = e.emit(Opcode::VInsert, to, dst, low, high);
    i.width2 = static_cast<uint8_t>(to / 2);
    i.imm = 1;
    return dst;
  };
  const VReg low = insert(32, pieces[0], pieces[1]);
  return width == 32 ? low : insert(64, low, insert(32, pieces[2], pieces[3]));
}

VReg assemble(Emitter& e, DType dtype, const std::vector<VReg>& lanes) {
  const int64_t size = dtype.bytes();
  const auto in_piece = static_cast<size_t>(16 / size);
  std::vector<VReg> pieces;
  for (size_t l = 0; l < lanes.size(); ++l) {
    if (l % in_piece == 0) pieces.push_back(e.lanes_const(0, 4, 16));
    const VReg bits = dtype.is_float() ? lane_bits(e, lanes[l], 16, size, 0) : lanes[l];
    const VReg dst = e.vec_reg(16);
    Inst& i = e.emit(Opcode::VPinsr, 16, dst, pieces.back(), bits);
    i.width2 = static_cast<uint8_t>(size);
    i.imm = static_cast<int64_t>(l % in_piece);
    pieces.back() = dst;
  }
  return join(e, width_of(dtype), pieces);
}

}  // namespace tiny::x86
