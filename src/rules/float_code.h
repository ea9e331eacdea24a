// What the decompositions of float functions are written with: constants, polynomials and exact
// sums in one float format, binary32 or binary64.  Every multiplication that feeds an addition is
// an explicit Fma, so that results do not depend on what a later pass fuses.
#pragma once

#include <cstdint>
#include <span>

#include "ir/build.h"

namespace tiny {

// hi + lo, a value in twice the precision; |lo| is at most half an ulp of hi unless said otherwise.
struct FloatPair {
  UOp hi;
  UOp lo;
};

class FloatCode {
 public:
  // For float32 or float64 expressions of the graph and dtype of `like`.
  explicit FloatCode(const UOp& like);

  bool is_double() const { return type_.scalar == ScalarType::Float64; }
  int digits() const { return type_.digits(); }
  int mantissa_bits() const { return type_.info().mantissa; }
  int bias() const { return type_.exponent_bias(); }
  DType type() const { return type_; }
  DType bits_type() const { return bits_; }

  UOp value(double v) const { return graph_->constant(type_, v); }
  UOp bits(int64_t v) const { return graph_->constant_int(bits_, v); }
  UOp as_bits(const UOp& x) const { return bitcast(x, bits_); }
  UOp as_float(const UOp& b) const { return bitcast(b, type_); }

  UOp times(const UOp& a, double b) const { return mul(a, value(b)); }
  UOp plus(const UOp& a, double b) const { return add(a, value(b)); }
  UOp fma(const UOp& a, double b, const UOp& c) const { return tiny::fma(a, value(b), c); }
  UOp fma(const UOp& a, double b, double c) const { return tiny::fma(a, value(b), value(c)); }
  // coefficients[0] + x * (coefficients[1] + ...).
  UOp polynomial(const UOp& x, std::span<const double> coefficients) const;

  // 1.5 * 2^(digits - 1): adding it rounds to an integer, whose low bits are those of the sum.
  double magic() const;
  // An integer n, |n| < 2^(digits - 3), in two forms: as a float, and as that plus magic(), whose
  // low bits are those of the integer.
  struct Whole {
    UOp value;
    UOp shifted;
  };
  // The nearest to x, and to x * scale.
  Whole nearest(const UOp& x) const { return from_shifted(plus(x, magic())); }
  Whole nearest_multiple(const UOp& x, double scale) const {
    return from_shifted(fma(x, scale, magic()));
  }
  // The nearest to x * scale, with `offset` more in the low bits of `shifted`.
  Whole nearest_multiple(const UOp& x, double scale, double offset) const {
    const UOp t = fma(x, scale, magic() + offset);
    return {plus(t, -(magic() + offset)), t};
  }
  // 2^e for the integer e + bias() in the low bits of a sum with magic(), in the range of normal
  // exponents: the bits of magic() leave at the top.
  UOp power_of_low_bits(const UOp& shifted) const {
    return as_float(elementwise(Op::Shl, {as_bits(shifted), bits(mantissa_bits())}));
  }
  // The lowest bits of n as an integer, with those above undefined.
  UOp low_bits(const UOp& whole_value) const { return as_bits(plus(whole_value, magic())); }
  // 2^n in the range of normal exponents.
  UOp power_of_two(const Whole& n) const;
  // y * 2^n for y near 1, which may be a denormal, 0 or inf.
  UOp scale(const UOp& y, const Whole& n) const;
  // x > 0 as m * 2^e, lowest_m <= m < 2 * lowest_m, also of denormals; e is an integer-valued
  // float.
  struct Split {
    UOp m;
    UOp e;
  };
  Split split_exponent(const UOp& x, double lowest_m) const;
  // y with the sign of x, for y >= 0.
  UOp with_sign_of(const UOp& y, const UOp& x) const;
  // x with its sign flipped where the highest bit of `b`, an integer, is set.
  UOp flip_sign(const UOp& x, const UOp& b) const;

  // The exact sum of two; the exact sum where |a| >= |b| or a is 0; the exact product.
  FloatPair two_sum(const UOp& a, const UOp& b) const;
  FloatPair fast_two_sum(const UOp& a, const UOp& b) const;
  FloatPair two_product(const UOp& a, const UOp& b) const;

 private:
  Whole from_shifted(const UOp& t) const { return {plus(t, -magic()), t}; }
  UOp sign_bit(const UOp& b) const;

  Graph* graph_;
  DType type_;
  DType bits_;
};

}  // namespace tiny
