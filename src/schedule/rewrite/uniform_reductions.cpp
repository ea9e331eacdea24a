#include "schedule/rewrite/uniform_reductions.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/build.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// Axes of one element are left to the reduction, which does not walk them.
bool is_folded(const UOp& reduce, int64_t axis) {
  const UOp& x = reduce.src(0);
  const Dim& size = shape_of(x)[static_cast<size_t>(axis)];
  return size.is_const() && size.value() > 1 && is_same_along(x, static_cast<size_t>(axis));
}

// x to the n-th: no more roundings than of a product of n factors, one after the other.
UOp power(UOp x, int64_t n) {
  UOp out = x;
  for (--n; n > 0; n >>= 1) {
    if (n & 1) out = mul(out, x);
    x = mul(x, x);
  }
  return out;
}

// What `op` makes of n times x.  Floats that may not hold n are computed in wider ones.
UOp folded(const UOp& x, Op op, int64_t n) {
  if (op != Op::Add && op != Op::Mul) return x;
  const DType wide = x.dtype().is_float() && x.dtype().bytes() < 4 ? kFloat32 : x.dtype();
  const UOp term = cast(x, wide);
  if (op == Op::Mul) return cast(power(term, n), x.dtype());
  const UOp terms = cast(x.graph().constant_int(kInt64, n), wide);
  const Shape ones(shape_of(x).size(), Dim(1));
  return cast(mul(term, make_expand(make_reshape(terms, ones), shape_of(x))), x.dtype());
}

}  // namespace

bool is_uniform_reduction(const UOp& u) {
  if (u.op() != Op::ReduceAxis || (u.dtype().is_bool() && u.reduce_arg().op == Op::Add))
    return false;
  return std::ranges::any_of(u.reduce_arg().axes, [&](int64_t axis) { return is_folded(u, axis); });
}

ChangedGraph fold_uniform_reductions(std::span<const UOp> roots) {
  return rebuild_with_origins(roots, has_memory, [](const UOp& node, const UOp& now) {
    if (has_memory(node) || !is_uniform_reduction(now)) return now;
    const UOp& x = now.src(0);
    std::vector<bool> same(shape_of(x).size());
    Ints walked;
    int64_t n = 1;
    for (const int64_t axis : now.reduce_arg().axes) {
      const auto i = static_cast<size_t>(axis);
      int64_t more = 0;
      same[i] = is_folded(now, axis) && !__builtin_mul_overflow(n, shape_of(x)[i].value(), &more);
      if (same[i])
        n = more;
      else
        walked.push_back(axis);
    }
    const Op op = now.reduce_arg().op;
    return folded(make_reduce(first_along(x, same), op, walked), op, n);
  });
}

}  // namespace tiny
