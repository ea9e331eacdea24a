#include <algorithm>
#include <cmath>
#include <limits>

#include "rules/float_code.h"
#include "rules/polynomials.h"
#include "rules/sign.h"
#include "rules/transcendental.h"

namespace tiny {

namespace {

using namespace polynomials;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// e^x = mantissa * 2^n for |x| below some hundreds.
struct Exponential {
  UOp mantissa;        // within [0.7, 1.5]
  FloatCode::Whole n;  // with the offset in the low bits of `shifted`
};
Exponential exponential(const FloatCode& k, const UOp& x, double offset) {
  const FloatCode::Whole n = k.nearest_multiple(x, kLog2E, offset);
  const double high = k.is_double() ? kLn2High64 : kLn2High32;
  const double low = k.is_double() ? kLn2Low64 : kLn2Low32;
  const UOp r = k.fma(n.value, -low, k.fma(n.value, -high, x));  // the inner one is exact
  const UOp q = k.is_double() ? k.polynomial(r, kExp64) : k.polynomial(r, kExp32);
  return {fma(r, fma(r, q, k.value(1)), k.value(1)), n};
}

// e^x where that is a normal number.
UOp exp_normal(const FloatCode& k, const UOp& x) {
  const Exponential e = exponential(k, x, k.bias());
  return e.mantissa * k.power_of_low_bits(e.n.shifted);
}

// Where e^x is still a normal number.
UOp least_normal(const FloatCode& k) {
  return k.value(k.is_double() ? -708 : -87);
}

// `result`, which is e^x where that is normal, for an x that is never above 0; 0 below.  Such an x
// is mostly what a softmax masks, and a denormal result costs some processors a hundred cycles.
UOp zero_below_normal(const FloatCode& k, const UOp& x, const UOp& result) {
  return where(less(x, least_normal(k)), k.value(0), result);
}

// Where e^x is 0.
double all_below(const FloatCode& k) {
  return k.is_double() ? -746 : -104;
}

// Whether `x` is a maximum with a constant of at least all_below().
bool has_lower_bound(const FloatCode& k, const UOp& x) {
  return x.op() == Op::Max && std::ranges::any_of(x.src(), [&](const UOp& s) {
           return s.is_const() && double_of(s.dtype(), s.const_bits()) >= all_below(k);
         });
}

// `x` held to where e^x is neither 0 nor inf, or just beyond; a NaN goes through.
UOp within_results(const FloatCode& k, const UOp& x) {
  const UOp low = has_lower_bound(k, x) ? x : maximum(x, k.value(all_below(k)));
  return minimum(low, k.value(k.is_double() ? 710 : 89));
}

// e^x for x between where it is 0 and where it is inf: two steps of about n/2, the first of which
// is exact.
UOp exp_anywhere(const FloatCode& k, const UOp& x) {
  const Exponential e = exponential(k, x, 2 * k.bias());
  const UOp half = k.nearest_multiple(x, kLog2E / 2, k.bias()).shifted;
  const UOp rest = k.as_bits(e.n.shifted) - k.as_bits(half);
  const UOp second = k.as_float(elementwise(Op::Shl, {rest, k.bits(k.mantissa_bits())}));
  return e.mantissa * k.power_of_low_bits(half) * second;
}

// log of x where x > 0 is finite.
UOp log_positive32(const FloatCode& k, const UOp& x) {
  const FloatCode::Split s = k.split_exponent(x, 2.0 / 3);
  const UOp f = k.plus(s.m, -1);
  const UOp z = f * f;
  const UOp q = fma(k.polynomial(f, kLog32), f, k.value(-0.5));
  const FloatPair sum = k.fast_two_sum(k.times(s.e, kLn2High32), f);
  return sum.hi + (sum.lo + fma(z, q, k.times(s.e, kLn2Low32)));
}

// log(1+f) = f - (h - s*(h + R)), h = f^2/2, s = f/(2+f), R = 2 atanh(s)/s - 2.
UOp log_positive64(const FloatCode& k, const UOp& x) {
  const FloatCode::Split e = k.split_exponent(x, std::sqrt(0.5));
  const UOp f = k.plus(e.m, -1);
  const UOp s = div(f, k.plus(f, 2));
  const UOp z = s * s;
  const UOp h = k.times(f, 0.5) * f;
  const UOp with_r = fma(z, k.polynomial(z, kLog64), h);
  const UOp low = fma(s, with_r, k.times(e.e, kLn2Low64));
  const FloatPair sum = k.fast_two_sum(k.times(e.e, kLn2High64), f);
  return sum.hi + (sum.lo - (h - low));
}

// 1 - erf(a), 0.9 <= a <= 6.
UOp erf_tail64(const FloatCode& k, const UOp& a) {
  const UOp t = div(k.plus(a, -2), k.plus(a, 2));
  return exp_normal(k, -(a * a)) * k.polynomial(t, kErfTail64);
}

}  // namespace

UOp exp_in_steps(const UOp& x) {
  const FloatCode k(x);
  if (never_positive(x)) return zero_below_normal(k, x, exp_normal(k, maximum(x, least_normal(k))));
  return exp_anywhere(k, within_results(k, x));
}

UOp exp_with_scale(const UOp& x) {
  const FloatCode k(x);
  const auto scaled = [&](const UOp& safe) {
    const Exponential e = exponential(k, safe, 0);
    return elementwise(Op::Scale, {e.mantissa, e.n.value});
  };
  if (never_positive(x)) return zero_below_normal(k, x, scaled(maximum(x, least_normal(k))));
  return scaled(within_results(k, x));
}

UOp exp_before_sum(const UOp& x, double term) {
  const FloatCode k(x);
  const bool vanishes = std::abs(term) >= 0x1p-60;  // what is below the normal numbers, beside it
  if (!vanishes || has_lower_bound(k, x) || never_positive(x)) return {};
  return elementwise(Op::Exp, {maximum(x, least_normal(k))});
}

UOp log_in_steps(const UOp& x) {
  const FloatCode k(x);
  const UOp positive = k.is_double() ? log_positive64(k, x) : log_positive32(k, x);
  const UOp otherwise = where(equal(x, k.value(0)), k.value(-kInf), k.value(kNaN));
  const UOp finite = where(less(k.value(0), x), positive, otherwise);
  return where(less(x, k.value(kInf)), finite, x);  // inf and NaN are their own
}

UOp tanh_in_steps(const UOp& x) {
  const FloatCode k(x);
  const UOp a = elementwise(Op::Abs, {x});
  const UOp z = x * x;
  const UOp q = k.is_double() ? k.polynomial(z, kTanh64) : k.polynomial(z, kTanh32);
  const UOp small = fma(a * z, q, a);
  // 1 - 2/(e^2a + 1), which is 1 well before the exponential overflows.
  const UOp twice = k.times(minimum(a, k.value(k.is_double() ? 20 : 10)), 2);
  const UOp tail = div(k.value(2), k.plus(exp_normal(k, twice), 1));
  return k.with_sign_of(where(less(a, k.value(0.6)), small, k.value(1) - tail), x);
}

UOp erf_in_steps(const UOp& x) {
  const FloatCode k(x);
  const UOp a = elementwise(Op::Abs, {x});
  const UOp z = x * x;
  const UOp q = k.is_double() ? k.polynomial(z, kErf64) : k.polynomial(z, kErf32);
  const UOp small = fma(a, q, a);
  const UOp tail = k.is_double() ? erf_tail64(k, minimum(a, k.value(6)))
                                 : exp_normal(k, k.polynomial(minimum(a, k.value(4)), kErfTail32));
  return k.with_sign_of(where(less(a, k.value(0.92)), small, k.value(1) - tail), x);
}

}  // namespace tiny
