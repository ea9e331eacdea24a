#include "rules/narrow.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/rebuild.h"
#include "rules/float8.h"

namespace tiny {

namespace {

bool is_narrow_int(DType t) {
  return t.is_int() && t.is_computed_wider();
}

// `u` of a narrow dtype as the wide one.  Signs are taken off first: they would cost more on bits.
UOp widened(const UOp& u) {
  if (u.op() == Op::Neg && u.dtype().is_float()) return neg(widened(u.src(0)));
  if (u.op() == Op::Abs && u.dtype().is_float()) return elementwise(Op::Abs, {widened(u.src(0))});
  return cast(u, u.dtype().computed());
}

UOp as_bits(const UOp& u) {
  return bitcast(u, u.dtype().carrier());
}

UOp wide_op(const Match& m, DType operand) {
  std::vector<UOp> src;
  for (const UOp& s : m.root().src()) src.push_back(s.dtype() == operand ? widened(s) : s);
  const UOp value = elementwise(m.root().op(), std::move(src));
  return info(m.root().op()).result == OpResult::Bool ? value : cast(value, m.root().dtype());
}

// Whether a reduction may have no steps.
bool may_be_empty(const UOp& reduce) {
  return std::ranges::any_of(reduce.src().subspan(1), [](const UOp& range) {
    return !range.src(0).is_const() || range.src(0).const_int() == 0;
  });
}

}  // namespace

UOp computed_wide(const Match& m) {
  const DType t = m.root().src().back().dtype();
  return t.is_computed_wider() ? wide_op(m, t) : UOp();
}

UOp reduced_wide(const Match& m) {
  const UOp& u = m.root();
  if (!u.dtype().is_computed_wider()) return {};
  std::vector<UOp> src(u.src().begin(), u.src().end());
  src[0] = widened(src[0]);
  const DType to = src[0].dtype();
  UOp value = m.graph().make(u.op(), std::move(src), u.arg());
  const Op op = u.reduce_arg().op;
  // The wide identity is no value of the narrow dtype.
  if (!u.dtype().has_infinities() && (op == Op::Min || op == Op::Max) && may_be_empty(u)) {
    const DType narrow = u.dtype().element();
    const uint64_t bits = op == Op::Min ? highest_bits(narrow) : lowest_bits(narrow);
    value = elementwise(op, {value, cast(m.graph().constant_bits(u.dtype(), bits), to)});
  }
  return cast(value, u.dtype());
}

UOp cast_through_wide(const Match& m) {
  const UOp& x = m.root().src(0);
  const DType to = m.root().dtype();
  const DType from = x.dtype();
  if (to.is_bool()) return not_equal(x, m.graph().constant(from, 0));
  if (from.is_narrow_float() && to != from.computed()) return cast(cast(x, from.computed()), to);
  if (to.is_narrow_float() && from != to.computed()) return cast(cast(x, to.computed()), to);
  if (from.is_float8()) return float_of_float8(x);
  if (to.is_float8()) return float8_of_float(x, to);
  if (is_narrow_int(from) && to != from.computed()) return cast(cast(x, from.computed()), to);
  if (!is_narrow_int(to) || from == to.computed() || from.is_bool()) return {};
  const UOp whole = cast(x, to.computed());
  if (!from.is_float()) return cast(whole, to);
  const int64_t lowest = int_of(to.element(), lowest_bits(to.element()));
  const int64_t highest = int_of(to.element(), highest_bits(to.element()));
  return cast(minimum(maximum(whole, lowest), highest), to);
}

UOp extremum_of_narrow(const Match& m) {
  const UOp& a = m.root().src(0);
  const UOp& b = m.root().src(1);
  if (!a.dtype().is_narrow_float()) return computed_wide(m);
  const UOp x = widened(a);
  const UOp y = widened(b);
  const UOp beyond = m.root().op() == Op::Max ? less(x, y) : less(y, x);
  return where(logical_or(beyond, not_equal(y, y)), b, a);
}

UOp sign_of_narrow(const Match& m) {
  if (!m.root().dtype().is_narrow_float() || !m.root().dtype().has_negative_zero())
    return computed_wide(m);
  const UOp bits = as_bits(m.root().src(0));
  const bool flips = m.root().op() == Op::Neg;
  const int64_t sign = int64_t{1} << (bits.dtype().bits() - 1);
  const UOp mask = m.graph().constant_int(bits.dtype(), flips ? sign : sign - 1);
  return bitcast(elementwise(flips ? Op::Xor : Op::And, {bits, mask}), m.root().dtype());
}

UOp choice_of_narrow(const Match& m) {
  const UOp& u = m.root();
  if (!u.dtype().is_narrow_float()) return {};  // every target chooses among narrow integers
  return bitcast(where(u.src(0), as_bits(u.src(1)), as_bits(u.src(2))), u.dtype());
}

DType dtype_in_kernel(DType dtype) {
  return dtype.is_float8() ? dtype.carrier() : dtype;
}

std::vector<UOp> as_float8_bits(std::span<const UOp> roots) {
  return map_nodes(roots, nullptr, [](const UOp& u, std::vector<UOp>& src) {
    const DType dtype = dtype_in_kernel(u.dtype());
    if (u.op() == Op::Bitcast && src[0].dtype() == dtype) return src[0];
    return u.graph().make(u.op(), src, u.arg(), dtype);
  });
}

}  // namespace tiny
