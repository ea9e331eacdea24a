#include "rules/constant_power.h"

#include <cmath>
#include <limits>

#include "ir/build.h"

namespace tiny {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
// Twelve products at most: less than the general way, whatever the target.
constexpr double kGreatestExponent = 64;
// In their own format these are at most 2 ulp off: half an ulp of a rounded factor weighs up to an
// ulp in the product, and none of them has more than two such factors before the last rounding.
constexpr double kLowestProduct = -2, kGreatestProduct = 4;

bool is_whole(double v) {
  return std::trunc(v) == v;
}

// x^n, n >= 1, by squaring from the highest bit on.
UOp product_power(const UOp& x, int n) {
  int bit = 1;
  while (bit * 2 <= n) bit *= 2;
  UOp power = x;
  while (bit /= 2) {
    power = mul(power, power);
    if (n & bit) power = mul(power, x);
  }
  return power;
}

// Negative powers are 0 but for 1 and -1.
UOp integer_power(const UOp& x, int n, ConstantLike constant) {
  if (n > 0) return product_power(x, n);
  const UOp one = constant(x, 1);
  const UOp minus_one = constant(x, -1);
  const UOp of_minus_one = n % 2 ? minus_one : one;
  const UOp zero = constant(x, 0);
  return where(equal(x, one), one, where(equal(x, minus_one), of_minus_one, zero));
}

// The base whose square root is its power of a half: -inf as inf, -0.0 as 0.0.
UOp root_base(const UOp& x, ConstantLike constant) {
  const UOp is_lowest = equal(x, constant(x, -kInf));
  return add(where(is_lowest, constant(x, kInf), x), constant(x, 0));
}

UOp square_root(const UOp& x) {
  return elementwise(Op::Sqrt, {x});
}

UOp constant_in_kernel(const UOp& like, double value) {
  return like.graph().constant(like.dtype(), value);
}

// Within the exponents of float64 all that float32 can hold is a normal number, also its inverse.
UOp power_in_double(const UOp& x, double exponent) {
  const double magnitude = std::fabs(exponent);
  const int whole = static_cast<int>(magnitude);
  UOp base = cast(x, DType(ScalarType::Float64, x.dtype().lanes));
  UOp power;
  if (whole == magnitude) {
    power = product_power(base, whole);
  } else {
    base = root_base(base, constant_in_kernel);
    power = square_root(base);
    if (whole > 0) power = mul(product_power(base, whole), power);
  }
  if (exponent < 0) power = div(constant_in_kernel(power, 1), power);
  return cast(power, x.dtype());
}

}  // namespace

UOp constant_power(const UOp& x, double exponent, ConstantLike constant) {
  if (exponent == 0) return constant(x, 1);
  if (exponent == 1) return x;
  const DType t = x.dtype();
  if (t.is_int()) {
    const bool is_short = is_whole(exponent) && std::fabs(exponent) <= kGreatestExponent;
    return is_short ? integer_power(x, static_cast<int>(exponent), constant) : UOp();
  }
  if (is_whole(exponent) && exponent >= kLowestProduct && exponent <= kGreatestProduct) {
    const int n = static_cast<int>(exponent);
    // The power of the inverse: its range is that of the result, the power's own may be less.
    return n < 0 ? product_power(div(constant(x, 1), x), -n) : product_power(x, n);
  }
  if (exponent != 0.5 && exponent != -0.5 && exponent != 1.5) return {};
  const UOp base = root_base(x, constant);
  const UOp root = square_root(base);
  if (exponent == 1.5) return mul(base, root);
  return exponent < 0 ? div(constant(x, 1), root) : root;
}

UOp constant_power_in_kernel(const UOp& x, double exponent) {
  if (UOp power = constant_power(x, exponent, constant_in_kernel)) return power;
  const bool has_form = is_whole(2 * exponent) && std::fabs(exponent) <= kGreatestExponent;
  return has_form && x.dtype().scalar == ScalarType::Float32 ? power_in_double(x, exponent) : UOp();
}

}  // namespace tiny
