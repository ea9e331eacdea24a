#include "tensor/quantization.h"

#include "base/checked.h"
#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

// Every element of `axis` so many times, one after the other.
Tensor repeated(const Tensor& a, int64_t axis, int64_t times) {
  const auto at = static_cast<size_t>(axis);
  Shape apart = a.shape();
  Shape joined = apart;
  apart.insert(apart.begin() + axis + 1, Dim(1));
  Shape wide = apart;
  wide[at + 1] = times;
  joined[at] = checked_mul(joined[at].value(), times, "the elements of all blocks");
  return a.with(make_reshape(make_expand(make_reshape(a.node(), apart), wide), joined));
}

// A scale or zero point as a tensor that broadcasts with x.
Tensor spread(const Tensor& parameter, const Tensor& x, const QuantizationParameters& p) {
  if (parameter.rank() == 0) return parameter;
  if (parameter.rank() == 1 && p.block == 0) {
    const int64_t count = parameter.shape()[0].value();
    if (count == 1) return reshape(parameter, Shape());
    const int64_t axis = checked_axis(p.axis, x.rank());
    require(decide_equal(x.shape()[static_cast<size_t>(axis)], count), Status::Shape,
            "quantization: a scale or zero point of shape ", parameter.shape(), " for axis ", axis,
            " of ", x.shape(), "; wanted one element, or as many as the axis has");
    Shape shape(x.shape().size(), Dim(1));
    shape[static_cast<size_t>(axis)] = count;
    return reshape(parameter, shape);
  }
  require(p.block > 0 && parameter.rank() == x.rank(), Status::Shape,
          "quantization: a scale or zero point of shape ", parameter.shape(), " for ", x.shape(),
          " in blocks of ", p.block, "; wanted as many axes, and blocks of at least 1");
  const int64_t axis = checked_axis(p.axis, x.rank());
  const Dim size = x.shape()[static_cast<size_t>(axis)];
  const Tensor wide = repeated(parameter, axis, p.block);
  require(decide_less_equal(size, wide.shape()[static_cast<size_t>(axis)]), Status::Shape,
          "quantization: a scale or zero point of shape ", parameter.shape(), " in blocks of ",
          p.block, " for ", size, " elements of axis ", axis, "; wanted at least as many");
  return slice_axis(wide, axis, 0, size);
}

// One of a row of a as a column; one of a column of b is a row already.
Tensor beside(const Tensor& parameter, bool is_of_rows) {
  if (parameter.rank() != 1) return parameter;
  if (parameter.shape()[0].is(1)) return reshape(parameter, Shape());
  return is_of_rows ? unsqueeze(parameter, {1}) : parameter;
}

Tensor centred(const Tensor& x, const Tensor& zero, bool is_of_rows) {
  const Tensor wide = cast(x, kInt32);
  return zero ? wide - cast(beside(zero, is_of_rows), kInt32) : wide;
}

}  // namespace

Tensor quantized(const Tensor& scaled, const Tensor& zero, DType to) {
  require(to.is_int(), Status::DType, "quantization to ", to, "; it takes a type of integers");
  const Tensor wide = scaled.dtype().bits() < 32 ? cast(scaled, kFloat32) : scaled;
  const Tensor moved = zero ? round(wide) + cast(zero, wide.dtype()) : round(wide);
  const Tensor low = number(moved, double_of(to, lowest_bits(to)));
  const Tensor high = number(moved, double_of(to, highest_bits(to)));
  return cast(minimum(maximum(moved, low), high), to);
}

Tensor over_scale(const Tensor& x, const QuantizationParameters& p, DType precision) {
  return cast(x, precision) / cast(spread(p.scale, x, p), precision);
}

Tensor quantize(const Tensor& x, const QuantizationParameters& p, DType to,
                std::optional<DType> precision) {
  const DType dtype = precision.value_or(p.scale.dtype());
  return quantized(over_scale(x, p, dtype), p.zero ? spread(p.zero, x, p) : Tensor(), to);
}

Tensor dequantize(const Tensor& x, const QuantizationParameters& p, DType to) {
  const DType counted = x.dtype().is_float() ? kFloat32 : kInt32;
  Tensor centered = cast(x, counted);
  // Negated before it is spread: what is small stays small where it is kept.
  if (p.zero) centered = centered + spread(neg(cast(p.zero, counted)), x, p);
  const DType wide = to.bits() < 32 ? kFloat32 : to;
  return cast(cast(centered, wide) * cast(spread(p.scale, x, p), wide), to);
}

namespace {

// [.., 8 / bits]: the numbers of each byte, along an axis of their own.
Tensor numbers_apart(const Tensor& bytes, int64_t bits) {
  const int64_t each = 8 / bits, rank = bytes.rank();
  if (each == 1) return unsqueeze(bytes, {rank});
  const Tensor shift = positions(bytes.context_ref(), kUInt8, each, rank, rank + 1);
  return bit_and(shift_right(unsqueeze(bytes, {rank}), shift * number_int(bytes, bits)),
                 number_int(bytes, (1 << bits) - 1));
}

}  // namespace

Tensor unpack_bits(const Tensor& bytes, int64_t bits) {
  require(bytes.dtype() == kUInt8 && bytes.rank() > 0 &&
              (bits == 1 || bits == 2 || bits == 4 || bits == 8),
          Status::InvalidArgument, "unpack_bits: numbers of ", bits, " bits in ", bytes.dtype(),
          " ", bytes.shape(), "; wanted 1, 2, 4 or 8 of uint8 with an axis");
  if (bits == 8) return bytes;
  Shape joined = bytes.shape();
  joined.back() = joined.back() * Dim(8 / bits);
  return reshape(numbers_apart(bytes, bits), joined);
}

Tensor matmul_packed(const Tensor& x, const Tensor& packed, int64_t bits, const Tensor& scale,
                     const Tensor& zero) {
  constexpr double kGreatest = 127;  // of int8, whose lowest number is not used
  const int64_t each = 8 / bits, last = x.rank() - 1;
  const int64_t blocks = packed.shape()[1].value(), bytes = packed.shape()[2].value();
  // Numbers that stand at the same place of neighbouring bytes lie side by side: words of them are
  // multiplied with words of the bytes.
  const Shape none(x.shape().size(), Dim(0));
  Shape rest = none, of_blocks = x.shape();
  rest.back() = Dim(blocks * bytes * each) - x.shape().back();
  of_blocks.back() = blocks;
  Shape apart = of_blocks;
  apart.push_back(bytes);
  apart.push_back(each);
  const Tensor wide = cast(reshape(pad(x, none, rest), apart), kFloat32);
  const Tensor rows = transpose(wide, last + 1, last + 2);
  const Ints in_block{last + 1, last + 2};
  const Tensor greatest = max(abs(rows), in_block, true);
  const Tensor step = greatest / number(greatest, kGreatest);
  const Tensor nothing = number(step, 0), one = number(step, 1);
  const Tensor q = contiguous(cast(round(rows / where(equal(step, nothing), one, step)), kInt8));
  const Tensor sums = contiguous(sum_in_dtype(cast(q, kInt32), in_block));  // [.., blocks]
  const Tensor weights = permute(numbers_apart(packed, bits), {1, 0, 3, 2});
  // [.., blocks, n, each, bytes]
  const Tensor products = cast(unsqueeze(q, {last + 1}), kInt32) * cast(weights, kInt32);
  const Tensor whole = cast(sum_in_dtype(products, {last + 2, last + 3}), kFloat32);
  const auto by_block = [](const Tensor& t) {
    return contiguous(cast(transpose(t, 0, 1), kFloat32));
  };
  const Tensor point = zero ? by_block(zero) : number(step, static_cast<double>(1 << (bits - 1)));
  const Tensor off = cast(unsqueeze(sums, {last + 1}), kFloat32) * point;
  const Tensor steps = unsqueeze(reshape(step, of_blocks), {last + 1});
  return cast(sum((whole - off) * (steps * by_block(scale)), {last}), x.dtype());
}

Tensor dequantize_packed(const Tensor& x, int64_t bits, const Tensor& scale, const Tensor& zero,
                         int64_t block) {
  const Tensor numbers = unpack_bits(x, bits);
  const int64_t last = numbers.rank() - 1;
  Tensor point = number(scale, static_cast<double>(1 << (bits - 1)));
  if (zero) {
    const bool is_packed = zero.dtype() == kUInt8;
    const Tensor all = is_packed ? unpack_bits(zero, bits) : zero;
    point = cast(slice_axis(all, all.rank() - 1, 0, scale.shape().back()), scale.dtype());
  }
  const QuantizationParameters p{scale, {}, last, block};
  // Negated before it is spread: what is small stays small where it is kept.
  const Tensor moved = zero ? cast(numbers, scale.dtype()) + spread(neg(point), numbers, p)
                            : cast(numbers, scale.dtype()) - point;
  return moved * spread(scale, numbers, p);
}

Quantized quantize_dynamically(const Tensor& x) {
  const Ints axes = every_axis(x.rank());
  const Tensor zero = full(x.context_ref(), x.dtype(), {}, 0);
  const Tensor high = maximum(max(x, axes), zero);
  const Tensor low = minimum(min(x, axes), zero);
  const Tensor range = (high - low) / number(high, 255);
  // All zeros: any scale will do.
  const Tensor scale = where(equal(range, zero), number(range, 1), range);
  const Tensor point = quantized(neg(low) / scale, Tensor(), kUInt8);
  return {quantized(x / scale, point, kUInt8), range, point};
}

Tensor matmul_integer(const Tensor& a, const Tensor& a_zero, const Tensor& b,
                      const Tensor& b_zero) {
  return matmul(centred(a, a_zero, true), centred(b, b_zero, false));
}

Tensor quantized_matmul(const Quantized& a, const Quantized& b, const Tensor& y_scale,
                        const Tensor& y_zero) {
  const Tensor total = matmul_integer(a.values, a.zero, b.values, b.zero);
  const Tensor factor = cast(beside(a.scale, true), kFloat32) *
                        cast(beside(b.scale, false), kFloat32) /
                        cast(beside(y_scale, true), kFloat32);
  return quantized(cast(total, kFloat32) * factor, beside(y_zero, true), y_zero.dtype());
}

}  // namespace tiny
