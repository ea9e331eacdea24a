#include "ir/dot.h"

#include <bit>
#include <utility>

#include "ir/bounds.h"

namespace tiny {

const char* to_string(DotKind kind) {
  static constexpr const char* kNames[kDotKinds] = {"u8u8", "u8s8", "s8s8", "bf16"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<DotKind> dot_kind(DType a, DType b, DType sum, bool* swapped) {
  *swapped = false;
  if (a == kBFloat16 && b == kBFloat16 && sum == kFloat32) return DotKind::Bf16;
  if (sum != kInt32 && sum != kUInt32) return std::nullopt;
  const auto is_byte = [](DType d) { return d == kInt8 || d == kUInt8; };
  if (!is_byte(a) || !is_byte(b)) return std::nullopt;
  if (a == b) return a == kUInt8 ? DotKind::U8U8 : DotKind::S8S8;
  *swapped = a == kInt8;
  return DotKind::U8S8;
}

std::optional<DotProduct> dot_product(const UOp& reduce) {
  if (reduce.op() != Op::Reduce || reduce.reduce_arg().op != Op::Add) return std::nullopt;
  const UOp& product = reduce.src(0);
  if (product.op() != Op::Mul) return std::nullopt;
  const UOp& left = product.src(0);
  const UOp& right = product.src(1);
  if (left.op() != Op::Cast || right.op() != Op::Cast) return std::nullopt;
  bool swapped = false;
  const auto kind = dot_kind(left.src(0).dtype(), right.src(0).dtype(), reduce.dtype(), &swapped);
  if (!kind) return std::nullopt;
  DotProduct out{*kind, UOp(left.src(0)), UOp(right.src(0))};
  if (swapped) std::swap(out.a, out.b);
  return out;
}

namespace {

// Below casts between bytes and the integers that they are computed in.
UOp below_casts(const UOp& value) {
  UOp node = value;
  while (node.op() == Op::Cast && node.src(0).dtype().is_int()) node = UOp(node.src(0));
  return node;
}

}  // namespace

std::optional<ByteBits> byte_bits(const UOp& value) {
  if (value.dtype() != kUInt8) return std::nullopt;
  const UOp choice = below_casts(value);
  if (choice.op() != Op::And || !choice.src(1).is_const()) return std::nullopt;
  const int64_t mask = choice.src(1).const_int();
  ByteBits bits{below_casts(choice.src(0)), UOp(), static_cast<uint8_t>(mask)};
  int64_t shifted = 0;
  if (bits.bytes.op() == Op::Shr) {
    bits.shift = UOp(bits.bytes.src(1));
    bits.bytes = below_casts(bits.bytes.src(0));
    const Interval by = bounds(bits.shift);
    if (by.lo < 0) return std::nullopt;
    shifted = by.hi;
  }
  constexpr int64_t kBits = 8;
  const bool is_within =
      mask >= 0 && mask < (1 << kBits) &&
      shifted + static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(mask))) <= kBits;
  return is_within && bits.bytes.dtype() == kUInt8 ? std::optional(bits) : std::nullopt;
}

UOp read_by_words(const UOp& operand) {
  const std::optional<ByteBits> bits = byte_bits(operand);
  return bits ? bits->bytes : operand;
}

}  // namespace tiny
