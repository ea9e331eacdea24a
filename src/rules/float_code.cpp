#include "rules/float_code.h"

#include <cmath>

#include "base/error.h"

namespace tiny {

FloatCode::FloatCode(const UOp& like) : graph_(&like.graph()), type_(like.dtype()) {
  invariant(type_.scalar == ScalarType::Float32 || type_.scalar == ScalarType::Float64,
            "float functions are written in float32 or float64");
  bits_ = DType(is_double() ? ScalarType::Int64 : ScalarType::Int32, type_.lanes);
}

UOp FloatCode::polynomial(const UOp& x, std::span<const double> coefficients) const {
  UOp sum = value(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    sum = tiny::fma(sum, x, value(coefficients[i]));
  return sum;
}

double FloatCode::magic() const {
  return std::ldexp(1.5, mantissa_bits());
}

UOp FloatCode::power_of_two(const Whole& n) const {
  // The bits of magic() leave at the top: all that are set stand above those of the exponent.
  return as_float(elementwise(Op::Shl, {as_bits(n.shifted) + bias(), bits(mantissa_bits())}));
}

UOp FloatCode::scale(const UOp& y, const Whole& n) const {
  // Two steps, the first of which is exact: of 2^(n-1) and 2, or for a result near the denormals of
  // 2^(n+up) and 2^-up.
  const int up = is_double() ? 128 : 64;
  const UOp is_small = less(n.value, value(is_double() ? -1000 : -100));
  const auto exponent = [&](int e) {
    return bits(static_cast<int64_t>(e + bias()) << mantissa_bits());
  };
  const UOp low = elementwise(Op::Shl, {as_bits(n.shifted), bits(mantissa_bits())});
  const UOp first = as_float(low + where(is_small, exponent(up), exponent(-1)));
  return y * first * where(is_small, value(std::ldexp(1.0, -up)), value(2));
}

FloatCode::Split FloatCode::split_exponent(const UOp& x, double lowest_m) const {
  const UOp small = less(x, value(std::ldexp(1.0, 1 - bias())));
  const UOp b = as_bits(where(small, times(x, std::ldexp(1.0, digits())), x));
  // The exponent, biased, counted from lowest_m upwards.
  const auto bits_of_double = [&](double v) {
    return static_cast<int64_t>(bits_of(type_.element(), v));
  };
  const int64_t one = bits_of_double(1);
  const DType plain(is_double() ? ScalarType::UInt64 : ScalarType::UInt32, type_.lanes);
  const UOp above = bitcast(b + (one - bits_of_double(lowest_m)), plain);
  const UOp width = graph_->constant_int(plain, mantissa_bits());
  const UOp biased = bitcast(elementwise(Op::Shr, {above, width}), bits_);
  const UOp m = as_float(b - elementwise(Op::Shl, {biased, bits(mantissa_bits())}) + one);
  // A small integer in the mantissa of this power of two is that much more than it.
  const double base = std::ldexp(1.0, mantissa_bits());
  const UOp with_base = elementwise(Op::Or, {biased, bits(bits_of_double(base))});
  const UOp e = plus(as_float(with_base), -(base + bias()));
  return {m, where(small, plus(e, -digits()), e)};
}

UOp FloatCode::with_sign_of(const UOp& y, const UOp& x) const {
  return as_float(elementwise(Op::Or, {as_bits(y), sign_bit(as_bits(x))}));
}

UOp FloatCode::flip_sign(const UOp& x, const UOp& b) const {
  return as_float(elementwise(Op::Xor, {as_bits(x), sign_bit(b)}));
}

UOp FloatCode::sign_bit(const UOp& b) const {
  return elementwise(Op::And, {b, bits(INT64_MIN >> (64 - bits_.bits()))});
}

FloatPair FloatCode::two_sum(const UOp& a, const UOp& b) const {
  const UOp s = a + b;
  const UOp from_b = s - a;
  const UOp from_a = s - from_b;
  return {s, (a - from_a) + (b - from_b)};
}

FloatPair FloatCode::fast_two_sum(const UOp& a, const UOp& b) const {
  const UOp s = a + b;
  return {s, b - (s - a)};
}

FloatPair FloatCode::two_product(const UOp& a, const UOp& b) const {
  const UOp p = a * b;
  return {p, tiny::fma(a, b, -p)};
}

}  // namespace tiny
