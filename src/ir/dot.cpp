#include "ir/dot.h"

#include <utility>

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

}  // namespace tiny
