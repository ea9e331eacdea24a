#include "tensor/activation.h"

#include <cmath>
#include <limits>

#include "tensor/alias.h"
#include "tensor/corner.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

Tensor as_float(const Tensor& a) {
  return cast(a, float_dtype(a));
}

// What a composition is computed in, so that 16-bit floats round once.
Tensor as_wide(const Tensor& a) {
  return cast(a, accumulator_dtype(float_dtype(a)));
}

Tensor times(const Tensor& a, double factor) {
  return mul(a, number(a, factor));
}

Tensor plus(const Tensor& a, double term) {
  return add(a, number(a, term));
}

// Between bounds, each of which may be no tensor.
Tensor kept_within(const Tensor& a, const Tensor& low, const Tensor& high, Corner corner) {
  Tensor out = a;
  if (low) out = with_corner(maximum(out, low), corner);
  if (high) out = with_corner(minimum(out, high), corner);
  return out;
}

// Where a function bends at 0 its slope there is that below, as PyTorch's is; of no number it is
// that above where an exponential's would be none.
Tensor is_positive(const Tensor& a) {
  return less(number(a, 0), a);
}
Tensor is_at_most_0(const Tensor& a) {
  return less_equal(a, number(a, 0));
}

Tensor rounded_like(const Tensor& result, const Tensor& a) {
  return cast(result, float_dtype(a));
}

}  // namespace

Tensor gelu(const Tensor& a, GeluKind kind) {
  const Tensor x = as_wide(a);
  const Tensor inner = kind == GeluKind::Exact
                           ? erf(times(x, std::sqrt(0.5)))
                           : tanh(times(add(x, times(mul(x, mul(x, x)), 0.044715)),
                                        std::sqrt(2 / 3.14159265358979323846)));
  return rounded_like(mul(times(x, 0.5), plus(inner, 1)), a);
}

Tensor silu(const Tensor& a) {
  const Tensor x = as_wide(a);
  return rounded_like(mul(x, sigmoid(x)), a);
}

// (u - 1) * x / log(u) with u = exp(x) cancels the rounding of u; what that adds to u - 1 has no
// slope, so that slopes of every order are those of exp.  Where u is 1 it is x itself, also -0, by
// a series with the function's slopes.
Tensor expm1(const Tensor& a) {
  const Tensor x = as_wide(a);
  const Tensor u = exp(x);
  const Tensor zero = number(x, 0);
  const Tensor less_one = plus(u, -1);
  const Tensor is_one = equal(less_one, zero);
  const Tensor lost = sub(div(mul(less_one, x), log(u)), less_one);
  // 1 is lost in u from here on; below, log(0) takes nothing of -1.
  const Tensor is_end = bit_or(less(number(x, 40), x), equal(u, zero));
  const Tensor far = add(less_one, detach(where(bit_or(is_one, is_end), zero, lost)));
  const Tensor near = mul(x, plus(times(x, 0.5), 1));
  return rounded_like(where(is_one, near, far), a);
}

// The same the other way round: u = 1 + x.
Tensor log1p(const Tensor& a) {
  const Tensor x = as_wide(a);
  const Tensor one = number(x, 1);
  const Tensor u = add(x, one);
  // What adding 1 has rounded away.  It has no slope: that of log(u) is the function's, of any
  // sign.
  const Tensor lost = detach(div(sub(sub(u, one), x), u));
  const Tensor infinity = number(x, std::numeric_limits<double>::infinity());
  const Tensor is_end = bit_or(equal(u, number(x, 0)), equal(u, infinity));
  const Tensor far = sub(log(u), where(is_end, number(x, 0), lost));
  const Tensor near = mul(x, plus(times(x, -0.5), 1));
  return rounded_like(where(equal(u, one), near, far), a);
}

Tensor elu(const Tensor& a, double alpha) {
  const Tensor x = as_wide(a);
  // What is not chosen is finite in its slopes, too: 0 times infinity is none.
  const Tensor low = where(is_at_most_0(x), x, number(x, -1));
  return rounded_like(where(is_at_most_0(x), times(expm1(low), alpha), x), a);
}

Tensor leaky_relu(const Tensor& a, double slope) {
  const Tensor x = as_float(a);
  return where(is_positive(x), x, times(x, slope));
}

Tensor hard_sigmoid(const Tensor& a, double alpha, double beta) {
  const Tensor x = as_float(a);
  return kept_within(plus(times(x, alpha), beta), number(x, 0), number(x, 1), Corner::Open);
}

Tensor softplus(const Tensor& a) {
  const Tensor x = as_wide(a);
  // The slopes at 0, of every order, are those below it: of max and abs they would be of a bend.
  const Tensor above = is_positive(x);
  const Tensor low = where(above, neg(x), x);
  return rounded_like(add(where(above, x, number(x, 0)), log1p(exp(low))), a);
}

Tensor softsign(const Tensor& a) {
  return div(a, add(number(a, 1), abs(a)));
}

Tensor mish(const Tensor& a) {
  return mul(a, tanh(softplus(a)));
}

Tensor hard_swish(const Tensor& a) {
  // The double next above 1/6: at -3 and 3 the product is at its bounds in each width of floats,
  // so that the slopes are those beyond.
  constexpr double kSixth = 0x1.5555555555556p-3;
  const Tensor x = as_wide(a);
  return rounded_like(mul(x, hard_sigmoid(x, kSixth, 0.5)), a);
}

Tensor swish(const Tensor& a, double beta) {
  const Tensor x = as_float(a);
  return mul(x, sigmoid(times(x, beta)));
}

Tensor exponential_unit(const Tensor& a, double scale, double width) {
  const Tensor x = as_float(a);
  const Tensor low = where(is_at_most_0(x), x, number(x, 0));
  const Tensor e = sub(exp(width == 1 ? low : div(low, number(x, width))), number(x, 1));
  return where(is_at_most_0(x), mul(number(x, scale), e), x);
}

Tensor celu(const Tensor& a, double alpha) {
  return exponential_unit(a, alpha, alpha);
}

Tensor selu(const Tensor& a, double alpha, double gamma) {
  const Tensor unit = exponential_unit(a, alpha, 1);
  return mul(number(unit, gamma), unit);
}

Tensor prelu(const Tensor& a, const Tensor& slope) {
  return where(is_positive(a), a, mul(a, slope));
}

Tensor thresholded_relu(const Tensor& a, double threshold) {
  const Tensor x = as_float(a);
  return where(less(number(x, threshold), x), x, number(x, 0));
}

Tensor soft_shrink(const Tensor& a, double lambda, double bias) {
  const Tensor by = number(a, bias);
  const Tensor low = less(a, number(a, -lambda));
  const Tensor high = less(number(a, lambda), a);
  return where(low, add(a, by), where(high, sub(a, by), number(a, 0)));
}

Tensor clip(const Tensor& a, const Tensor& low, const Tensor& high) {
  return kept_within(a, low, high, Corner::Closed);
}

namespace {

// Of rows that are shifted by it: the result is the same whatever it is, so that it has no slope.
Tensor highest_of(const Tensor& x, const Ints& axes) {
  return detach(max(x, axes, true));
}

// x - max(x), with 0 for a maximum that is no number to subtract.
Tensor centred(const Tensor& x, const Ints& axes, Tensor* shift) {
  const Tensor highest = highest_of(x, axes);
  const Tensor infinity = number(x, std::numeric_limits<double>::infinity());
  *shift = where(equal(abs(highest), infinity), number(x, 0), highest);
  return sub(x, *shift);
}

}  // namespace

Tensor softmax(const Tensor& a, int64_t axis) {
  const Tensor x = as_wide(a);
  const Tensor e = exp(sub(x, highest_of(x, {axis})));
  // One division a row: the sum is a number from 1 to the row's length, or NaN.
  const Tensor sum = reduce_as_is(e, Op::Add, {axis}, true);
  return rounded_like(mul(e, reciprocal(sum)), a);
}

Tensor log_softmax(const Tensor& a, int64_t axis) {
  const Tensor x = as_wide(a);
  const Tensor shifted = sub(x, highest_of(x, {axis}));
  return rounded_like(sub(shifted, log(reduce_as_is(exp(shifted), Op::Add, {axis}, true))), a);
}

Tensor logsumexp(const Tensor& a, const Ints& axes, bool keepdims) {
  const Tensor x = as_wide(a);
  Tensor shift;
  const Tensor shifted = centred(x, axes, &shift);
  const Tensor out = add(log(reduce_as_is(exp(shifted), Op::Add, axes, true)), shift);
  return rounded_like(keepdims ? out : squeeze(out, checked_axes(axes, a.rank())), a);
}

}  // namespace tiny
