#include "tensor/elementwise.h"

#include <limits>
#include <optional>

#include "base/error.h"
#include "ir/build.h"
#include "rules/constant_power.h"
#include "tensor/corner.h"
#include "tensor/create.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"

namespace tiny {

namespace {

Tensor apply(Op op, const Tensor& a) {
  return a.with(elementwise(op, {a.node()}));
}

// A function of floats.
Tensor apply_float(Op op, const Tensor& a) {
  return a.with(elementwise(op, {as_dtype(a, float_dtype(a))}));
}

// Rounding: integers are round.
Tensor apply_rounding(Op op, const Tensor& a) {
  return a.dtype().is_float() ? apply(op, a) : a;
}

Tensor apply(Op op, const Tensor& a, const Tensor& b) {
  const Tensor* const operands[] = {&a, &b};
  Meeting m = meet(operands);
  // What folds to a constant (x == x) still has an element for each of x's.
  return a.with(broadcast_to(elementwise(op, std::move(m.nodes)), m.shape));
}

void require_ints(const Tensor& a, const Tensor& b, const char* what, bool bools) {
  for (const Tensor* t : {&a, &b})
    require(t->dtype().is_int() || (bools && t->dtype().is_bool()), Status::DType, what,
            " takes integers", bools ? " or bools" : "", "; got ", a.dtype(), " and ", b.dtype());
}

Tensor apply_bits(Op op, const Tensor& a, const Tensor& b, const char* what, bool bools) {
  require_ints(a, b, what, bools);
  const Tensor* const operands[] = {&a, &b};
  const DType dtype = common_dtype(operands);
  require(!dtype.is_float(), Status::DType, what, " of ", a.dtype(), " and ", b.dtype(),
          ": no integer type holds both");
  return apply(op, a, b);
}

// Beside an integer a bool is 0 or 1, as in sums.
Tensor apply_shift(Op op, const Tensor& a, const Tensor& b) {
  const bool is_mixed = a.dtype().is_bool() != b.dtype().is_bool();
  return apply_bits(op, a, b, "a shift", is_mixed);
}

// Operands of a division, as numbers.
Meeting meet_numbers(const Tensor& a, const Tensor& b) {
  const Tensor* const operands[] = {&a, &b};
  const DType dtype = common_dtype(operands);
  return meet_as(operands, dtype.is_bool() ? kInt64 : dtype);
}

// What a float quotient is computed in, so that it is exact as long as it fits 29 bits.
DType quotient_dtype(DType dtype) {
  return dtype.bits() <= 32 ? kFloat64 : dtype;
}

UOp constant_like(const UOp& a, double value) {
  return broadcast_to(a.graph().constant(a.dtype(), value), shape_of(a));
}

UOp is_infinite(const UOp& a) {
  return equal(elementwise(Op::Abs, {a}), constant_like(a, __builtin_inf()));
}

// C's fmod: a - b * trunc(a / b), and `a` for an infinite divisor.
UOp float_remainder(const UOp& a, const UOp& b) {
  const UOp r = sub(a, mul(b, elementwise(Op::Trunc, {div(a, b)})));
  return where(logical_and(is_infinite(b), logical_not(is_infinite(a))), a, r);
}

Tensor float_quotient(Op rounding, const Meeting& m, const Tensor& a) {
  const DType wide = quotient_dtype(m.dtype);
  const UOp q = div(cast(m.nodes[0], wide), cast(m.nodes[1], wide));
  return a.with(cast(elementwise(rounding, {q}), m.dtype));
}

}  // namespace

Tensor neg(const Tensor& a) {
  return apply(Op::Neg, a);
}
Tensor abs(const Tensor& a) {
  return apply(Op::Abs, a);
}
Tensor invert(const Tensor& a) {
  require_ints(a, a, "not", true);
  return apply(Op::Not, a);
}
Tensor sqrt(const Tensor& a) {
  return apply_float(Op::Sqrt, a);
}
Tensor floor(const Tensor& a) {
  return apply_rounding(Op::Floor, a);
}
Tensor ceil(const Tensor& a) {
  return apply_rounding(Op::Ceil, a);
}
Tensor trunc(const Tensor& a) {
  return apply_rounding(Op::Trunc, a);
}
Tensor round(const Tensor& a) {
  return apply_rounding(Op::Round, a);
}
Tensor exp(const Tensor& a) {
  return apply_float(Op::Exp, a);
}
Tensor log(const Tensor& a) {
  return apply_float(Op::Log, a);
}
Tensor sin(const Tensor& a) {
  return apply_float(Op::Sin, a);
}
Tensor cos(const Tensor& a) {
  return apply_float(Op::Cos, a);
}
Tensor tanh(const Tensor& a) {
  return apply_float(Op::Tanh, a);
}
Tensor erf(const Tensor& a) {
  return apply_float(Op::Erf, a);
}
Tensor reciprocal(const Tensor& a) {
  return div(number(cast(a, float_dtype(a)), 1), a);
}
Tensor rsqrt(const Tensor& a) {
  return reciprocal(sqrt(a));
}
Tensor sigmoid(const Tensor& a) {
  const Tensor e = exp(neg(cast(a, float_dtype(a))));
  return reciprocal(add(number(e, 1), e));
}
Tensor relu(const Tensor& a) {
  return with_corner(maximum(a, number(a, 0)), Corner::Open);
}
Tensor sign(const Tensor& a) {
  const Tensor zero = number(a, 0);
  const Tensor positive = where(less(zero, a), number(a, 1), zero);
  if (a.dtype().is_bool() || a.dtype().is_unsigned()) return positive;
  const Tensor result = where(less(a, zero), number(a, -1), positive);
  // No number stays none, and has slope 0 as all others have.
  return a.dtype().is_float() ? where(is_nan(a), mul(a, zero), result) : result;
}
Tensor square(const Tensor& a) {
  return mul(a, a);
}

Tensor add(const Tensor& a, const Tensor& b) {
  return apply(Op::Add, a, b);
}
Tensor sub(const Tensor& a, const Tensor& b) {
  const Tensor* const operands[] = {&a, &b};
  const Meeting m = meet(operands);
  if (m.dtype.is_bool()) return a.with(elementwise(Op::Xor, m.nodes));
  return a.with(broadcast_to(sub(m.nodes[0], m.nodes[1]), m.shape));
}
Tensor mul(const Tensor& a, const Tensor& b) {
  return apply(Op::Mul, a, b);
}
Tensor div(const Tensor& a, const Tensor& b) {
  const Tensor* const operands[] = {&a, &b};
  Meeting m = meet_as(operands, float_dtype(a.context(), common_dtype(operands)));
  return a.with(elementwise(Op::Div, std::move(m.nodes)));
}
Tensor floor_div(const Tensor& a, const Tensor& b) {
  const Meeting m = meet_numbers(a, b);
  if (m.dtype.is_float()) return float_quotient(Op::Floor, m, a);
  return a.with(elementwise(Op::FloorDiv, m.nodes));
}
Tensor trunc_div(const Tensor& a, const Tensor& b) {
  const Meeting m = meet_numbers(a, b);
  if (m.dtype.is_float()) return float_quotient(Op::Trunc, m, a);
  return a.with(elementwise(Op::TruncDiv, m.nodes));
}
Tensor trunc_mod(const Tensor& a, const Tensor& b) {
  const Meeting m = meet_numbers(a, b);
  if (!m.dtype.is_float()) return a.with(elementwise(Op::TruncMod, m.nodes));
  const DType wide = quotient_dtype(m.dtype);
  return a.with(cast(float_remainder(cast(m.nodes[0], wide), cast(m.nodes[1], wide)), m.dtype));
}
Tensor floor_mod(const Tensor& a, const Tensor& b) {
  const Meeting m = meet_numbers(a, b);
  if (!m.dtype.is_float()) return a.with(elementwise(Op::FloorMod, m.nodes));
  const DType wide = quotient_dtype(m.dtype);
  const UOp y = cast(m.nodes[1], wide);
  const UOp r = float_remainder(cast(m.nodes[0], wide), y);
  // A remainder of the other sign than the divisor is one divisor away.
  const UOp zero = constant_like(r, 0);
  const UOp other_sign = logical_and(not_equal(r, zero), not_equal(less(r, zero), less(y, zero)));
  return a.with(cast(where(other_sign, add(r, y), r), m.dtype));
}

namespace {

// Integers to integer powers, by squaring; negative powers are 0 but for 1 and -1.
Tensor integer_power(const Meeting& m, const Tensor& a) {
  const Tensor one = number_int(a.with(m.nodes[0]), 1);
  const Tensor zero = number_int(one, 0);
  const Tensor base = a.with(m.nodes[0]);
  const Tensor exponent = a.with(m.nodes[1]);
  Tensor power = base;
  Tensor rest = exponent;
  Tensor result = one;
  const int64_t bits = m.dtype.bits() - (m.dtype.is_signed() ? 1 : 0);
  for (int64_t bit = 0; bit < bits; ++bit) {
    const Tensor odd = not_equal(bit_and(rest, one), zero);
    result = mul(result, where(odd, power, one));
    if (bit + 1 == bits) break;
    power = mul(power, power);
    rest = shift_right(rest, one);
  }
  if (m.dtype.is_unsigned()) return result;
  const Tensor minus_one = number_int(one, -1);
  const Tensor odd = not_equal(bit_and(exponent, one), zero);
  const Tensor of_minus_one = where(odd, minus_one, one);
  const Tensor inverse =
      where(equal(base, one), one, where(equal(base, minus_one), of_minus_one, zero));
  return where(less(exponent, zero), inverse, result);
}

// The number that every element of `value` is, if that shows.
std::optional<double> constant_value(UOp value) {
  std::vector<DType> casts;
  while (value.op() == Op::Expand || value.op() == Op::Reshape || value.op() == Op::Cast) {
    if (value.op() == Op::Cast) casts.push_back(value.dtype());
    value = UOp(value.src(0));
  }
  if (!value.is_const()) return std::nullopt;
  for (size_t i = casts.size(); i-- > 0;) value = cast(value, casts[i]);
  return double_of(value.dtype(), value.const_bits());
}

}  // namespace

Tensor pow(const Tensor& a, const Tensor& b) {
  const Meeting m = meet_numbers(a, b);
  if (const auto exponent = constant_value(m.nodes[1])) {
    if (*exponent == 1) return a.with(m.nodes[0]);
    // 16-bit floats are rounded once.
    const DType wide = m.dtype.is_float() ? accumulator_dtype(m.dtype) : m.dtype;
    const UOp power = constant_power(cast(m.nodes[0], wide), *exponent, constant_like);
    // x^1.5 is written out in kernels alone: x times its root has the slope 0 * inf at 0.
    if (power && *exponent != 1.5) return a.with(cast(power, m.dtype));
  }
  if (m.dtype.is_int()) return integer_power(m, a);
  return a.with(elementwise(Op::Pow, m.nodes));
}

Tensor maximum(const Tensor& a, const Tensor& b) {
  return apply(Op::Max, a, b);
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  return apply(Op::Min, a, b);
}
Tensor with_corner(const Tensor& extremum, Corner corner) {
  const UOp& node = extremum.node();
  if (!node.dtype().is_float() || (node.op() != Op::Max && node.op() != Op::Min)) return extremum;
  for (const size_t i : {size_t{1}, size_t{0}}) {
    UOp number = node.src(i);
    while (has(number.op(), kMovement) && !is_bound(number)) number = UOp(number.src(0));
    if (!number.is_const()) continue;
    const UOp bound = make_bound(node.src(i), corner);
    return extremum.with(i == 1 ? elementwise(node.op(), {node.src(0), bound})
                                : elementwise(node.op(), {bound, node.src(1)}));
  }
  return extremum;
}
Tensor bit_and(const Tensor& a, const Tensor& b) {
  return apply_bits(Op::And, a, b, "and", true);
}
Tensor bit_or(const Tensor& a, const Tensor& b) {
  return apply_bits(Op::Or, a, b, "or", true);
}
Tensor bit_xor(const Tensor& a, const Tensor& b) {
  return apply_bits(Op::Xor, a, b, "xor", true);
}
Tensor shift_left(const Tensor& a, const Tensor& b) {
  return apply_shift(Op::Shl, a, b);
}
Tensor shift_right(const Tensor& a, const Tensor& b) {
  return apply_shift(Op::Shr, a, b);
}

Tensor less(const Tensor& a, const Tensor& b) {
  return apply(Op::Less, a, b);
}
Tensor less_equal(const Tensor& a, const Tensor& b) {
  return apply(Op::LessEqual, a, b);
}
Tensor greater(const Tensor& a, const Tensor& b) {
  return less(b, a);
}
Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return less_equal(b, a);
}
Tensor equal(const Tensor& a, const Tensor& b) {
  return apply(Op::Equal, a, b);
}
Tensor not_equal(const Tensor& a, const Tensor& b) {
  return apply(Op::NotEqual, a, b);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const Tensor* const values[] = {&a, &b};
  const DType dtype = common_dtype(values);
  const Tensor* const all[] = {&condition, &a, &b};
  require_one_context(all);
  const Shape shape = broadcast_shape(condition.shape(), broadcast_shape(a.shape(), b.shape()));
  return a.with(where(broadcast_to(cast(condition.node(), kBool), shape),
                      broadcast_to(as_dtype(a, dtype), shape),
                      broadcast_to(as_dtype(b, dtype), shape)));
}

Tensor cast(const Tensor& a, DType dtype) {
  return a.with(as_dtype(a, dtype));
}

Tensor bitcast(const Tensor& a, DType dtype) {
  require(a.dtype() == dtype ||
              (a.dtype().bytes() == dtype.bytes() && !dtype.is_bool() && !a.dtype().is_bool()),
          Status::DType, "a bitcast is between numbers of equal size; got ", a.dtype(), " to ",
          dtype);
  return a.with(bitcast(a.node(), dtype));
}

Tensor contiguous(const Tensor& a) {
  return a.with(a.graph().make(Op::Contiguous, {a.node()}));
}

Tensor is_nan(const Tensor& a) {
  if (!a.dtype().is_float()) return a.with(broadcast_to(a.graph().boolean(false), a.shape()));
  return not_equal(a, a);
}

Tensor is_inf(const Tensor& a, bool positive, bool negative) {
  if (!a.dtype().is_float() || (!positive && !negative))
    return a.with(broadcast_to(a.graph().boolean(false), a.shape()));
  const Tensor infinity = number(a, std::numeric_limits<double>::infinity());
  if (!negative) return equal(a, infinity);
  const Tensor down = equal(a, neg(infinity));
  return positive ? bit_or(equal(a, infinity), down) : down;
}

}  // namespace tiny
