#include "schedule/rewrite/float_sums.h"

#include <cmath>
#include <limits>
#include <optional>

#include "ir/build.h"
#include "ir/dot.h"
#include "schedule/rewrite/narrow_operands.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// The greatest magnitude of a byte that a factor is made of; none of others.
std::optional<double> greatest_of(const UOp& factor) {
  const UOp node = below_movement(factor);
  if (has_memory(node) || node.op() != Op::Cast) return std::nullopt;
  const DType from = node.src(0).dtype();
  if (from == kUInt8) return std::numeric_limits<uint8_t>::max();
  if (from == kInt8) return -static_cast<double>(std::numeric_limits<int8_t>::min());
  return std::nullopt;
}

bool fits_floats(const UOp& reduce) {
  if (reduce.op() != Op::ReduceAxis || reduce.reduce_arg().op != Op::Add ||
      reduce.dtype() != kInt32 || reduce.src(0).op() != Op::Mul)
    return false;
  const UOp& product = reduce.src(0);
  const auto a = greatest_of(product.src(0)), b = greatest_of(product.src(1));
  if (!a || !b) return false;
  const Shape& shape = shape_of(product);
  double steps = 1;
  for (const int64_t axis : reduce.reduce_arg().axes)
    steps *= static_cast<double>(upper_bound(shape[static_cast<size_t>(axis)]));
  return steps * *a * *b <= std::ldexp(1.0, std::numeric_limits<float>::digits);
}

}  // namespace

ChangedGraph sum_in_floats(std::span<const UOp> roots, const Machine& target) {
  if ((target.dots & kIntegerDots) || target.computes_in_groups()) return unchanged(roots);
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (has_memory(node) || !fits_floats(now)) return now;
    const UOp& product = now.src(0);
    const auto as_float = [](const UOp& factor) { return cast(without_cast(factor), kFloat32); };
    const UOp floats = mul(as_float(product.src(0)), as_float(product.src(1)));
    return cast(now.graph().make(Op::ReduceAxis, {floats}, now.arg(), kFloat32), kInt32);
  });
}

}  // namespace tiny
