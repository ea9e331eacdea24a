#include <cmath>
#include <vector>

#include "rules/float_code.h"
#include "rules/polynomials.h"
#include "rules/transcendental.h"

// sin and cos: |x| = n * pi/2 + r, |r| <= pi/4, then a polynomial of r chosen by n mod 4.
//
// r is kept as a pair, so that its error is far below an ulp.  Up to kModerate, n * pi/2 is taken
// off in three parts.  Beyond, x * 2/pi is formed modulo 4 from the bits of 2/pi that matter at x's
// exponent (the method of Payne and Hanek, in floats: products of full-precision pieces are exact
// pairs, so no wide integers are needed and lanes keep their width).  Both ways are computed and
// one is selected; sin and cos of one argument share them.

namespace tiny {

namespace {

using namespace polynomials;

constexpr double kModerate32 = 131072;     // n < 2^17, so that n * (first part) leaves exactly
constexpr double kModerate64 = 134217728;  // n < 2^27

struct Reduced {
  FloatPair r;
  UOp n;  // integer-valued
};

Reduced reduce_moderate(const FloatCode& k, const UOp& a) {
  const double* half_pi = k.is_double() ? kHalfPi64 : kHalfPi32;
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

// The pieces of 2/pi from the first that matters for `a`, with `a` scaled to match: what a piece
// before it would contribute is a multiple of 4.
std::vector<UOp> matching_pieces(const FloatCode& k, UOp& a, size_t count) {
  std::vector<UOp> pieces;
  if (k.is_double()) {
    for (double v : kTwoOverPi64) pieces.push_back(k.value(v));
  } else {
    for (double v : kTwoOverPi32) pieces.push_back(k.value(v));
  }
  const int p = k.digits();
  for (int step = k.is_double() ? 16 : 4; step > 0; step /= 2) {
    const UOp beyond = less_equal(k.value(std::ldexp(1.0, p * (step + 1) + 1)), a);
    const size_t kept = count + static_cast<size_t>(step) - 1;
    const auto piece = [&](size_t i) { return i < pieces.size() ? pieces[i] : k.value(0); };
    std::vector<UOp> chosen;
    for (size_t i = 0; i < kept; ++i)
      chosen.push_back(where(beyond, piece(i + static_cast<size_t>(step)), piece(i)));
    pieces = std::move(chosen);
    a = where(beyond, k.times(a, std::ldexp(1.0, -p * step)), a);
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
  const std::vector<UOp> pieces = matching_pieces(k, a, kPieces);
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
  const double* half_pi = k.is_double() ? kHalfPi64 : kHalfPi32;
  const FloatPair r = k.two_product(turns.hi, k.value(half_pi[0]));
  const UOp lo = k.fma(turns.lo, half_pi[0], k.fma(turns.hi, half_pi[1], r.lo));
  return {k.fast_two_sum(r.hi, lo), n};
}

Reduced reduce(const FloatCode& k, const UOp& a) {
  const Reduced moderate = reduce_moderate(k, a);
  const Reduced large = reduce_large(k, a);
  const UOp is_moderate = less(a, k.value(k.is_double() ? kModerate64 : kModerate32));
  return {{where(is_moderate, moderate.r.hi, large.r.hi),
           where(is_moderate, moderate.r.lo, large.r.lo)},
          where(is_moderate, moderate.n, large.n)};
}

UOp sin_of(const FloatCode& k, const FloatPair& r, const UOp& z) {
  const UOp q = k.is_double() ? k.polynomial(z, kSin64) : k.polynomial(z, kSin32);
  return r.hi + fma(r.hi * z, q, r.lo);
}

UOp cos_of(const FloatCode& k, const FloatPair& r, const UOp& z) {
  const UOp q = k.is_double() ? k.polynomial(z, kCos64) : k.polynomial(z, kCos32);
  // 1 - z/2 is formed as a pair: its rounding would cost half an ulp.
  const UOp h = k.times(z, 0.5);
  const UOp w = k.value(1) - h;
  const UOp lost = (k.value(1) - w) - h;
  return w + (lost + fma(z * z, q, -(r.hi * r.lo)));
}

// sin(a + turn * pi/2) for a >= 0.
UOp sin_of_turned(const FloatCode& k, const UOp& a, int64_t turn) {
  const Reduced reduced = reduce(k, a);
  const UOp z = reduced.r.hi * reduced.r.hi;
  const UOp quadrant = k.low_bits(reduced.n) + turn;
  const UOp odd = elementwise(Op::And, {quadrant, k.bits(1)});
  const UOp y = where(equal(odd, k.bits(1)), cos_of(k, reduced.r, z), sin_of(k, reduced.r, z));
  return k.flip_sign(y, elementwise(Op::Shl, {quadrant, k.bits(k.bits_type().bits() - 2)}));
}

}  // namespace

UOp sin_in_steps(const UOp& x) {
  const FloatCode k(x);
  return k.flip_sign(sin_of_turned(k, elementwise(Op::Abs, {x}), 0), k.as_bits(x));
}

UOp cos_in_steps(const UOp& x) {
  const FloatCode k(x);
  return sin_of_turned(k, elementwise(Op::Abs, {x}), 1);
}

}  // namespace tiny
