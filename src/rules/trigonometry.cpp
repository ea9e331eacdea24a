#include <cmath>
#include <span>
#include <vector>

#include "rules/float_code.h"
#include "rules/float_range.h"
#include "rules/polynomials.h"
#include "rules/transcendental.h"

// sin and cos: |x| = n * pi/2 + r, |r| <= pi/4, then a polynomial of r chosen by n mod 4.
//
// x * 2/pi is formed modulo 4 from the bits of 2/pi that matter at x's exponent (the method of
// Payne and Hanek, in floats, so that no wide integers are needed).  float32 is computed in
// float64, where a product with a piece of 29 bits is exact, and which is precise enough without
// pairs.  In float64 products are exact pairs, r is one, so that its error is far below an ulp, and
// up to kModerate64 n * pi/2 is taken off in three parts: both ways are computed and one is
// selected.  sin and cos of one argument share their reduction.  A float32 of which is known that
// it is not large (float_range.h) is reduced in float64 by two parts of pi/2.

namespace tiny {

namespace {

using namespace polynomials;

constexpr double kModerate64 = 134217728;  // n < 2^27, so that n * (first part) leaves exactly

struct Reduced {
  FloatPair r;
  UOp n;  // integer-valued
};

Reduced reduce_moderate(const FloatCode& k, const UOp& a) {
  const double* half_pi = kHalfPi64;
  const UOp n = k.nearest_multiple(a, kTwoOverPi).value;
  const UOp r = k.fma(n, -half_pi[0], a);  // exact
  const FloatPair part = k.two_product(n, k.value(half_pi[1]));
  const FloatPair s = k.two_sum(r, -part.hi);
  return {k.fast_two_sum(s.hi, k.fma(n, -half_pi[2], s.lo - part.lo)), n};
}

// v - 4 * round(v / 4), exact.
UOp modulo_four(const FloatCode& k, const UOp& v) {
  return k.fma(elementwise(Op::Round, {k.times(v, 0.25)}), -4, v);
}

// 2/pi in pieces of some bits.
struct Pieces {
  std::span<const double> values;
  int bits = 0;
  int dropped_from = 0;  // 2^this: what the first piece contributes is a multiple of 4
  int dropped_max = 0;   // at once, a power of two: then half as many, and so on
};
constexpr Pieces kOfFloat32{kTwoOverPi29, 29, 54, 2};
constexpr Pieces kOfFloat64{kTwoOverPi64, 53, 2 * 53 + 1, 16};

// The pieces from the first that matters for `a`, with `a` scaled to match: what a piece before it
// would contribute is a multiple of 4.
std::vector<UOp> matching_pieces(const FloatCode& k, const Pieces& of, UOp& a, size_t count) {
  std::vector<UOp> pieces;
  for (const double v : of.values) pieces.push_back(k.value(v));
  for (int step = of.dropped_max; step > 0; step /= 2) {
    const UOp beyond =
        less_equal(k.value(std::ldexp(1.0, of.bits * (step - 1) + of.dropped_from)), a);
    const size_t kept = count + static_cast<size_t>(step) - 1;
    const auto piece = [&](size_t i) { return i < pieces.size() ? pieces[i] : k.value(0); };
    std::vector<UOp> chosen;
    for (size_t i = 0; i < kept; ++i)
      chosen.push_back(where(beyond, piece(i + static_cast<size_t>(step)), piece(i)));
    pieces = std::move(chosen);
    a = where(beyond, k.times(a, std::ldexp(1.0, -of.bits * step)), a);
  }
  return pieces;
}

// Adds `more` to the pair's high part exactly and leaves the rounding error.
UOp accumulate(const FloatCode& k, UOp& sum, const UOp& more) {
  const FloatPair s = k.two_sum(sum, more);
  sum = s.hi;
  return s.lo;
}

Reduced reduce_large(const FloatCode& k, UOp a) {
  constexpr size_t kPieces = 5;
  const std::vector<UOp> pieces = matching_pieces(k, kOfFloat64, a, kPieces);
  std::vector<FloatPair> products;
  for (const UOp& piece : pieces) {
    products.push_back(k.two_product(a, piece));
    a = k.times(a, std::ldexp(1.0, -k.digits()));
  }
  // What may exceed 4 is reduced first; all sums are exact until n is known.
  UOp sum = modulo_four(k, products[0].hi);
  std::vector<UOp> low;
  for (const UOp& v : {modulo_four(k, products[0].lo), modulo_four(k, products[1].hi),
                       products[1].lo, products[2].hi})
    low.push_back(accumulate(k, sum, v));
  const UOp n = elementwise(Op::Round, {sum});
  sum = sum - n;
  low.push_back(products[2].lo);
  low.push_back(products[3].hi);
  UOp rest = products[3].lo + products[4].hi;
  for (const UOp& v : low) rest = rest + accumulate(k, sum, v);
  // Those may have carried past a half.
  const FloatPair turns = k.fast_two_sum(sum, rest);
  const double* half_pi = kHalfPi64;
  const FloatPair r = k.two_product(turns.hi, k.value(half_pi[0]));
  const UOp lo = k.fma(turns.lo, half_pi[0], k.fma(turns.hi, half_pi[1], r.lo));
  return {k.fast_two_sum(r.hi, lo), n};
}

Reduced reduce(const FloatCode& k, const UOp& a) {
  const Reduced moderate = reduce_moderate(k, a);
  const Reduced large = reduce_large(k, a);
  const UOp is_moderate = less(a, k.value(kModerate64));
  return {{where(is_moderate, moderate.r.hi, large.r.hi),
           where(is_moderate, moderate.r.lo, large.r.lo)},
          where(is_moderate, moderate.n, large.n)};
}

UOp sin_of(const FloatCode& k, const FloatPair& r, const UOp& z) {
  const UOp q = k.polynomial(z, kSin64);
  return r.hi + fma(r.hi * z, q, r.lo);
}

UOp cos_of(const FloatCode& k, const FloatPair& r, const UOp& z) {
  const UOp q = k.polynomial(z, kCos64);
  // 1 - z/2 is formed as a pair: its rounding would cost half an ulp.
  const UOp h = k.times(z, 0.5);
  const UOp w = k.value(1) - h;
  const UOp lost = (k.value(1) - w) - h;
  return w + (lost + fma(z * z, q, -(r.hi * r.lo)));
}

// Of a float32 `a` in float64: r needs no second part.
struct ReducedFloat32 {
  UOp r;
  UOp quadrant;  // the lowest bits of n, those above undefined
};

ReducedFloat32 reduce_float32(const FloatCode& k, UOp a) {
  constexpr size_t kCount = 4;
  std::vector<UOp> products;
  for (const UOp& piece : matching_pieces(k, kOfFloat32, a, kCount)) {
    products.push_back(a * piece);  // exact
    a = k.times(a, std::ldexp(1.0, -kOfFloat32.bits));
  }
  // The first may be too large for an integer's low bits; the others are below 2^30.
  const UOp first = modulo_four(k, products[0]);
  const FloatCode::Whole n = k.nearest(first + products[1] + products[2]);
  // Exact but for the last, which is small beside a worst case's remainder.
  const UOp turns = (first - n.value) + products[1] + products[2] + products[3];
  return {k.times(turns, kHalfPi64[0]), k.as_bits(n.shifted)};
}

// n < 2^20: the first difference is a multiple of 2^-52 below 1, so exact, and what the second part
// lacks of pi/2, n * 2^-107, is far below an ulp of the least remainder, 2^-30.
constexpr double kNearFloat32 = 0x1p20;

ReducedFloat32 reduce_near_float32(const FloatCode& k, const UOp& a) {
  const FloatCode::Whole n = k.nearest_multiple(a, kTwoOverPi);
  const UOp first = k.fma(n.value, -kHalfPi64[0], a);
  return {k.fma(n.value, -kHalfPi64[1], first), k.as_bits(n.shifted)};
}

bool is_near(const UOp& x) {
  const auto range = range_of_float(x);
  return range && range->lo >= -kNearFloat32 && range->hi <= kNearFloat32;
}

// `even` in the even quadrants, else `odd`, with the quadrant's sign.
UOp of_quadrant(const FloatCode& k, const UOp& quadrant, const UOp& even, const UOp& odd) {
  const UOp is_odd = equal(elementwise(Op::And, {quadrant, k.bits(1)}), k.bits(1));
  const UOp sign = elementwise(Op::Shl, {quadrant, k.bits(k.bits_type().bits() - 2)});
  return k.flip_sign(where(is_odd, odd, even), sign);
}

// sin(a + turn * pi/2) for a >= 0.
UOp sin_of_turned64(const FloatCode& k, const UOp& a, int64_t turn) {
  const Reduced reduced = reduce(k, a);
  const UOp z = reduced.r.hi * reduced.r.hi;
  return of_quadrant(k, k.low_bits(reduced.n) + turn, sin_of(k, reduced.r, z),
                     cos_of(k, reduced.r, z));
}

UOp sin_of_turned32(const FloatCode& k, const UOp& a, int64_t turn, bool near) {
  const auto [r, quadrant] = near ? reduce_near_float32(k, a) : reduce_float32(k, a);
  const UOp z = r * r;
  const UOp sine = fma(r * z, k.polynomial(z, kSin32), r);
  const UOp cosine = fma(z * z, k.polynomial(z, kCos32), k.fma(z, -0.5, 1));
  return of_quadrant(k, quadrant + turn, sine, cosine);
}

UOp in_steps(const UOp& x, bool is_cos) {
  const bool is_double = x.dtype() == kFloat64;
  const UOp wide = is_double ? x : cast(x, kFloat64);
  const FloatCode k(wide);
  const UOp a = elementwise(Op::Abs, {wide});
  const int64_t turn = is_cos ? 1 : 0;
  const UOp y = is_double ? sin_of_turned64(k, a, turn) : sin_of_turned32(k, a, turn, is_near(x));
  const UOp result = is_cos ? y : k.flip_sign(y, k.as_bits(wide));
  return is_double ? result : cast(result, kFloat32);
}

}  // namespace

UOp sin_in_steps(const UOp& x) {
  return in_steps(x, false);
}

UOp cos_in_steps(const UOp& x) {
  return in_steps(x, true);
}

}  // namespace tiny
