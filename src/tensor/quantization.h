// Numbers as small integers q with a scale and a zero point: x = (q - zero) * scale.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace tiny {

// round(scaled) + zero (may be none), at the ends of what the integer type `to` holds.
Tensor quantized(const Tensor& scaled, const Tensor& zero, DType to);

// To what a scale and a zero point belong.  One number is of all elements; of one axis they have a
// number for each element of `axis` of x; with a `block` they have x's axes, and a number for so
// many elements along `axis`, of which the last may be fewer.
struct QuantizationParameters {
  Tensor scale;
  Tensor zero;  // or none, which is 0
  int64_t axis = 1;
  int64_t block = 0;
};
// round(x / scale) + zero as integers; the quotient is made in `precision`, the scale's dtype if
// there is none.
Tensor quantize(const Tensor& x, const QuantizationParameters& parameters, DType to,
                std::optional<DType> precision = {});
// x / scale in `precision`, before it is rounded.
Tensor over_scale(const Tensor& x, const QuantizationParameters& parameters, DType precision);
// (x - zero) * scale, of integers or floats, made in float32 at least and rounded once.
Tensor dequantize(const Tensor& x, const QuantizationParameters& parameters, DType to);

// Unsigned numbers of `bits` (1, 2, 4 or 8) that stand side by side in the bytes of the last axis,
// the lowest bits first, as uint8 each: the axis is 8 / bits times as long.
Tensor unpack_bits(const Tensor& bytes, int64_t bits);
// (x - zero) * scale for numbers of `bits` packed along the last axis of x, of which each `block`
// has a scale along the last axis of `scale`: [.., 8 / bits times as many], in the scale's dtype.
// The zero is of the scale's shape, packed in bytes as x is, or none, which is 2^(bits - 1).
Tensor dequantize_packed(const Tensor& x, int64_t bits, const Tensor& scale, const Tensor& zero,
                         int64_t block);

// x [.., k] times the columns that `packed` [n, blocks, bytes] holds in numbers of `bits` (2, 4 or
// 8), of which a block has a scale and a zero (none: 2^(bits - 1)), both [n, blocks]: [.., n] in
// x's dtype.  The last block may be longer than what is left of k.  Each block of x is rounded to
// int8 by its greatest magnitude: products are made of integers.
Tensor matmul_packed(const Tensor& x, const Tensor& packed, int64_t bits, const Tensor& scale,
                     const Tensor& zero);

struct Quantized {
  Tensor values;
  Tensor scale, zero;
};
// As uint8, whose 256 steps go over the range that holds 0 and every element.
Quantized quantize_dynamically(const Tensor& x);

// (a - a_zero) (b - b_zero) in int32.  A zero point is none, one number, or one for each row of a
// or column of b.
Tensor matmul_integer(const Tensor& a, const Tensor& a_zero, const Tensor& b, const Tensor& b_zero);
// The product of the numbers that a and b stand for, as integers of y_zero's dtype.  The scales and
// zero points are as above; y's are of rows.
Tensor quantized_matmul(const Quantized& a, const Quantized& b, const Tensor& y_scale,
                        const Tensor& y_zero);

}  // namespace tiny
