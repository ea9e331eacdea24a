#include "tensor/trigonometry.h"

#include <numbers>

#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/promotion.h"

namespace tiny {

namespace {

// Of float32 and float64.  What is not chosen is computed of numbers at which it has slopes: added
// to what is chosen, 0 times infinity would be none.

Tensor tan_of(const Tensor& a) {
  return sin(a) / cos(a);
}

Tensor cosh_of(const Tensor& a) {
  return (exp(a) + exp(neg(a))) * number(a, 0.5);
}

// The difference of exponentials loses digits near 0, where the series takes over.
Tensor sinh_of(const Tensor& a) {
  const Tensor is_near = less(abs(a), number(a, 1.0));
  const Tensor near = where(is_near, a, number(a, 0.0));
  const Tensor z = square(near);
  Tensor series = number(a, 1.0);
  for (int k = 8; k >= 1; --k)
    series = number(a, 1.0) + series * z * number(a, 1.0 / (2.0 * k * (2.0 * k + 1)));
  const Tensor far = (exp(a) - exp(neg(a))) * number(a, 0.5);
  return where(is_near, series * near, far);
}

// Halving the angle twice leaves |a| < 0.2, where eleven terms of the series are exact to double.
Tensor atan_of(const Tensor& a) {
  const Tensor one = number(a, 1.0);
  const Tensor inverted = less(one, abs(a));
  Tensor t = where(inverted, reciprocal(where(inverted, a, one)), a);
  for (int i = 0; i < 2; ++i) t = t / (one + sqrt(one + square(t)));
  const Tensor z = square(t);
  Tensor series = number(a, 1.0 / 21);
  for (int k = 9; k >= 0; --k) series = number(a, 1.0 / (2 * k + 1)) - z * series;
  const Tensor angle = t * series * number(a, 4.0);
  const double right = std::numbers::pi / 2;
  const Tensor quarter = where(less(a, number(a, 0.0)), number(a, -right), number(a, right));
  return where(inverted, quarter - angle, angle);
}

// Of `size`, the number without its sign: beyond 1/2 the angle that is left to the right one is
// twice the arcsine of `sqrt((1 - size) / 2)`, whose slope has no part that is 0 * inf at the ends.
struct Arcsine {
  Tensor is_below;
  Tensor is_far;
  Tensor angle;  // of size, or half of what is left
};
Arcsine arcsine(const Tensor& a) {
  const Tensor one = number(a, 1.0), half = number(a, 0.5);
  const Tensor is_below = less(a, number(a, 0.0));
  const Tensor size = where(is_below, neg(a), a);  // not abs, whose slope at 0 is 0
  const Tensor is_far = less(half, size);
  const Tensor s = where(is_far, sqrt((one - size) * half), size);
  return {is_below, is_far, atan_of(s / sqrt((one - s) * (one + s)))};
}

Tensor asin_of(const Tensor& a) {
  const auto [is_below, is_far, angle] = arcsine(a);
  const Tensor right = number(a, std::numbers::pi / 2);
  const Tensor whole = where(is_far, right - angle * number(a, 2.0), angle);
  return where(is_below, neg(whole), whole);
}

Tensor acos_of(const Tensor& a) {
  const auto [is_below, is_far, angle] = arcsine(a);
  const Tensor right = number(a, std::numbers::pi / 2), twice = angle * number(a, 2.0);
  return where(is_far, where(is_below, number(a, std::numbers::pi) - twice, twice),
               where(is_below, right + angle, right - angle));
}

// log(x + sqrt(x^2 + c)) for large x, where the square would overflow.
Tensor far_log(const Tensor& a) {
  return log(a) + number(a, std::numbers::ln2);
}
Tensor is_far(const Tensor& size) {
  return less(number(size, 1e8), size);
}

Tensor asinh_of(const Tensor& a) {
  const Tensor one = number(a, 1.0);
  const Tensor is_below = less(a, number(a, 0.0));
  const Tensor size = where(is_below, neg(a), a);  // not abs, whose slope at 0 is 0
  const Tensor far = is_far(size);
  const Tensor low = where(far, one, size), z = square(low);
  const Tensor near = log1p(low + z / (one + sqrt(one + z)));
  const Tensor whole = where(far, far_log(where(far, size, one)), near);
  return where(is_below, neg(whole), whole);
}

Tensor acosh_of(const Tensor& a) {
  const Tensor one = number(a, 1.0), far = is_far(abs(a));
  const Tensor t = where(far, one, a) - one, more = t + number(a, 2.0);
  // The roots of both factors apart, whose slope at 1 has no part that is 0 * inf; below 1 there is
  // no value, but below -1 a slope, as in PyTorch.
  const Tensor is_below = less(t, number(a, 0.0));
  const Tensor roots = sqrt(where(is_below, t * more, t)) * sqrt(where(is_below, one, more));
  const Tensor near = log1p(t + roots);
  return where(far, far_log(where(far, a, one)), near);
}

Tensor atanh_of(const Tensor& a) {
  return (log1p(a) - log1p(neg(a))) * number(a, 0.5);
}

using Function = Tensor(const Tensor&);

Tensor in_wide(Function* function, const Tensor& a) {
  const DType result = float_dtype(a);
  const DType wide = accumulator_dtype(result);
  return cast(function(cast(a, wide)), result);
}

}  // namespace

Tensor tan(const Tensor& a) {
  return in_wide(tan_of, a);
}
Tensor asin(const Tensor& a) {
  return in_wide(asin_of, a);
}
Tensor acos(const Tensor& a) {
  return in_wide(acos_of, a);
}
Tensor atan(const Tensor& a) {
  return in_wide(atan_of, a);
}
Tensor sinh(const Tensor& a) {
  return in_wide(sinh_of, a);
}
Tensor cosh(const Tensor& a) {
  return in_wide(cosh_of, a);
}
Tensor asinh(const Tensor& a) {
  return in_wide(asinh_of, a);
}
Tensor acosh(const Tensor& a) {
  return in_wide(acosh_of, a);
}
Tensor atanh(const Tensor& a) {
  return in_wide(atanh_of, a);
}

}  // namespace tiny
