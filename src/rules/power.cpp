#include <cmath>
#include <limits>

#include "rules/float_code.h"
#include "rules/polynomials.h"
#include "rules/transcendental.h"

// pow(x, y) = 2^(y * log2|x|), then signs and special cases.  The product needs as many bits more
// than the result as its exponent has: float32 takes them from float64, float64 from pairs.

namespace tiny {

namespace {

using namespace polynomials;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// log2 of a > 0, of 0 (-inf), inf and NaN.
UOp ends_of_log(const FloatCode& k, const UOp& a, const UOp& log) {
  return where(less(a, k.value(kInf)), where(equal(a, k.value(0)), k.value(-kInf), log), a);
}

// 2^(y * log2 a), a >= 0 of float32 or NaN.
UOp power32(const UOp& a32, const UOp& y32) {
  const DType wide(ScalarType::Float64, a32.dtype().lanes);
  const UOp a = cast(a32, wide);
  const FloatCode k(a);
  const FloatCode::Split x = k.split_exponent(a, std::sqrt(0.5));
  const UOp f = k.plus(x.m, -1);
  const UOp s = div(f, k.plus(f, 2));
  const UOp log = ends_of_log(k, a, fma(s, k.polynomial(s * s, kLog2Pow32), x.e));
  // Beyond these the result is 0 or inf anyway.
  const UOp p = minimum(maximum(cast(y32, wide) * log, k.value(-200)), k.value(200));
  const FloatCode::Whole n = k.nearest(p);
  const UOp power = k.polynomial(p - n.value, kExp2Pow32) * k.power_of_two(n);
  return cast(power, a32.dtype());
}

// a * (c[0] + c[1]).
FloatPair times_pair(const FloatCode& k, const FloatPair& a, const double* c) {
  const FloatPair p = k.two_product(a.hi, k.value(c[0]));
  return {p.hi, k.fma(a.hi, c[1], k.fma(a.lo, c[0], p.lo))};
}

// log2 of m * 2^e as a pair, sqrt(1/2) <= m < sqrt(2).
FloatPair log2_pair(const FloatCode& k, const FloatCode::Split& x) {
  // s = f/(2 + f), z = s^2: log m = s * (2 + 2/3 z + z^2 R).
  const UOp f = k.plus(x.m, -1);
  const FloatPair w = k.fast_two_sum(k.value(2), f);
  const UOp s = div(f, w.hi);
  const UOp s_low = div(fma(-s, w.lo, fma(-s, w.hi, f)), w.hi);
  FloatPair z = k.two_product(s, s);
  z.lo = fma(k.times(s, 2), s_low, z.lo);
  const FloatPair third = times_pair(k, z, kTwoThirds);
  const UOp rest = fma(z.hi * z.hi, k.polynomial(z.hi, kLogPow64), third.lo);
  const FloatPair two = k.fast_two_sum(k.value(2), third.hi);
  const FloatPair sum = k.fast_two_sum(two.hi, two.lo + rest);
  FloatPair log = k.two_product(s, sum.hi);
  log.lo = fma(s, sum.lo, fma(s_low, sum.hi, log.lo));
  const FloatPair log2 = times_pair(k, log, kLog2EParts);
  const FloatPair whole = k.fast_two_sum(x.e, log2.hi);
  return {whole.hi, whole.lo + log2.lo};
}

// 2^(y * log2 a), a >= 0 of float64 or NaN.
UOp power64(const UOp& a, const UOp& y) {
  const FloatCode k(a);
  FloatPair log = log2_pair(k, k.split_exponent(a, std::sqrt(0.5)));
  log.hi = ends_of_log(k, a, log.hi);
  // Beyond 2^66 any a but 1 gives 0 or inf, and the product below stays finite.
  const UOp bounded = minimum(maximum(y, k.value(-0x1p66)), k.value(0x1p66));
  const FloatPair product = k.two_product(bounded, log.hi);
  const UOp p = minimum(maximum(product.hi, k.value(-1100)), k.value(1025));
  const UOp is_within = equal(p, product.hi);
  const UOp p_low = where(is_within, fma(bounded, log.lo, product.lo), k.value(0));
  // 2^(n + r) = 2^n e^(r ln 2).
  const FloatCode::Whole n = k.nearest(p);
  const FloatPair r = k.fast_two_sum(p - n.value, p_low);
  const FloatPair t = times_pair(k, r, kLn2Parts);
  const UOp q = k.polynomial(t.hi, kExp64);
  const UOp mantissa = k.plus(t.hi + fma(t.hi * t.hi, q, t.lo), 1);
  return k.scale(mantissa, n);
}

}  // namespace

UOp pow_in_steps(const UOp& x, const UOp& y) {
  const FloatCode k(x);
  const UOp zero = k.value(0);
  const UOp one = k.value(1);
  const UOp a = elementwise(Op::Abs, {x});
  const UOp power = k.is_double() ? power64(a, y) : power32(a, y);
  const UOp magnitude = where(equal(a, one), one, power);  // also of y = inf

  const UOp half = k.times(y, 0.5);
  const UOp is_whole = equal(elementwise(Op::Trunc, {y}), y);
  const UOp is_odd = logical_and(is_whole, not_equal(elementwise(Op::Trunc, {half}), half));
  const UOp has_sign = less(k.as_bits(x), k.bits(0));
  const UOp with_sign = where(logical_and(is_odd, has_sign), -magnitude, magnitude);
  const UOp is_finite_negative = logical_and(less(x, zero), less(k.value(-kInf), x));
  const UOp is_undefined = logical_and(is_finite_negative, logical_not(is_whole));
  const UOp result = where(is_undefined, k.value(kNaN), with_sign);
  return where(logical_or(equal(y, zero), equal(x, one)), one, result);
}

}  // namespace tiny
