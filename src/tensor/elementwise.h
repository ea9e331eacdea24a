// Arithmetic element by element.  Operands broadcast and promote; functions of floats take integers
// and bools as float32.  What each op computes at its edges is in docs/semantics.md.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

Tensor neg(const Tensor& a);
Tensor abs(const Tensor& a);
Tensor invert(const Tensor& a);  // logical on bool, bitwise on integers
Tensor sqrt(const Tensor& a);
Tensor floor(const Tensor& a);  // these four leave integers as they are
Tensor ceil(const Tensor& a);
Tensor trunc(const Tensor& a);
Tensor round(const Tensor& a);  // half to even
Tensor exp(const Tensor& a);
Tensor log(const Tensor& a);
Tensor sin(const Tensor& a);
Tensor cos(const Tensor& a);
Tensor tanh(const Tensor& a);
Tensor erf(const Tensor& a);
Tensor reciprocal(const Tensor& a);
Tensor rsqrt(const Tensor& a);
Tensor sigmoid(const Tensor& a);
Tensor relu(const Tensor& a);
Tensor sign(const Tensor& a);  // of NaN: NaN
Tensor square(const Tensor& a);

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);        // true division
Tensor floor_div(const Tensor& a, const Tensor& b);  // towards minus infinity
Tensor floor_mod(const Tensor& a, const Tensor& b);  // the sign of the divisor
Tensor trunc_div(const Tensor& a, const Tensor& b);  // towards zero
Tensor trunc_mod(const Tensor& a, const Tensor& b);  // the sign of the dividend, C's fmod
Tensor pow(const Tensor& a, const Tensor& b);        // integers wrap
Tensor maximum(const Tensor& a, const Tensor& b);    // NaN if either is NaN
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor bit_and(const Tensor& a, const Tensor& b);  // logical on bool
Tensor bit_or(const Tensor& a, const Tensor& b);
Tensor bit_xor(const Tensor& a, const Tensor& b);
Tensor shift_left(const Tensor& a, const Tensor& b);
Tensor shift_right(const Tensor& a, const Tensor& b);  // arithmetic for signed integers

Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor cast(const Tensor& a, DType dtype);
Tensor bitcast(const Tensor& a, DType dtype);  // between numbers of equal size
Tensor contiguous(const Tensor& a);            // row-major memory of its own
Tensor is_nan(const Tensor& a);
Tensor is_inf(const Tensor& a, bool positive = true, bool negative = true);  // of these signs

inline Tensor operator+(const Tensor& a, const Tensor& b) {
  return add(a, b);
}
inline Tensor operator-(const Tensor& a, const Tensor& b) {
  return sub(a, b);
}
inline Tensor operator*(const Tensor& a, const Tensor& b) {
  return mul(a, b);
}
inline Tensor operator/(const Tensor& a, const Tensor& b) {
  return div(a, b);
}

}  // namespace tiny
