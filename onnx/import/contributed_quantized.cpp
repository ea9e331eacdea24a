// What onnxruntime's quantiser writes (com.microsoft): operators of integers with a scale and a
// zero point, and products with weights of few bits.
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/quantized_conv.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// ---- One scale and one zero point for each tensor.

QuantizationParameters parameters(const Call& c, size_t scale) {
  const auto one = [&](size_t i) {
    const Tensor t = c.in_or(i, Tensor());
    if (t && t.rank() > 0) {
      c.check(t.rank() == 1 && dim_of(t, 0) == 1, "input ", i, " has shape ", t.shape(),
              " and must have one element");
      return reshape(t, Shape());
    }
    return t;
  };
  c.in(scale);
  return {one(scale), one(scale + 1)};
}

// The numbers that input `i` stands for, whose scale and zero point follow.
Tensor real(const Call& c, size_t i) {
  return dequantize(c.in(i), parameters(c, i + 1), c.in(i + 1).dtype());
}

// With the scale of input `i` and the zero point that follows, of which the type is that of x.
Tensors whole(const Call& c, const Tensor& y, size_t i) {
  return {quantize(y, parameters(c, i), c.in(0).dtype())};
}

// The same of sums, products and windows' means, which round behind the zero point: a half is
// another integer where that is odd.
Tensors whole_behind_zero(const Call& c, const Tensor& y, size_t i) {
  const QuantizationParameters p = parameters(c, i);
  const Tensor scaled = over_scale(y, p, p.scale.dtype());
  return {quantized(p.zero ? scaled + cast(p.zero, scaled.dtype()) : scaled, Tensor(),
                    c.in(0).dtype())};
}

Tensors import_add(Call& c) {
  return whole_behind_zero(c, real(c, 0) + real(c, 3), 6);
}
Tensors import_mul(Call& c) {
  return whole_behind_zero(c, real(c, 0) * real(c, 3), 6);
}
Tensors import_sigmoid(Call& c) {
  return whole(c, sigmoid(real(c, 0)), 3);
}
Tensors import_leaky_relu(Call& c) {
  return whole(c, leaky_relu(real(c, 0), static_cast<double>(c.real_attr("alpha", 0.01f))), 3);
}

// Before version 13 of the standard's the axes from `axis` on are one.
Tensors import_softmax(Call& c) {
  const Tensor x = real(c, 0);
  const bool is_flat = c.attr("opset") < 13;
  const int64_t axis = axis_of(c.attr("axis", is_flat ? 1 : -1), x.rank());
  if (!is_flat) return whole(c, softmax(x, axis), 3);
  return whole(c, reshape(softmax(flatten(x, axis), axis), x.shape()), 3);
}

Tensors import_reduce_mean(Call& c) {
  const Tensor x = real(c, 0);
  return whole(c,
               mean(x, axes_of(c.ints_attr("axes", every_axis(x.rank())), x.rank()),
                    c.flag("keepdims", true)),
               3);
}

// Inputs: the condition; two numbers of three inputs each; the result's scale and zero point.
Tensors import_where(Call& c) {
  const Tensor y = where(cast(c.in(0), kBool), real(c, 1), real(c, 4));
  return {quantize(y, parameters(c, 7), c.in(1).dtype())};
}

// Inputs: the result's scale and zero point, then three for each part.
Tensors import_concat(Call& c) {
  c.check(c.inputs() > 2 && c.inputs() % 3 == 2, "it has ", c.inputs(),
          " inputs; wanted 2, and 3 for each part");
  Tensors parts;
  for (size_t i = 2; i < c.inputs(); i += 3) parts.push_back(real(c, i));
  const Tensor y = concat(parts, axis_of(c.attr("axis"), parts[0].rank()));
  return {quantize(y, parameters(c, 0), c.in(1).dtype())};
}

// ---- Pools and convolutions, with the channels first or (channels_last) last.

template <class Make>
Tensor in_layout(const Call& c, const Tensor& x, const Make& make) {
  if (!c.flag("channels_last", false)) return make(x);
  return move_axis(make(move_axis(x, x.rank() - 1, 1)), 1, x.rank() - 1);
}

Tensors import_average_pool(Call& c) {
  const Tensor means = in_layout(c, real(c, 0), [&](const Tensor& x) {
    Window w = pool_window(c, x);
    w.count_include_pad = c.flag("count_include_pad", false);
    return avg_pool(x, w);
  });
  return whole_behind_zero(c, means, 3);
}

Tensors import_global_average_pool(Call& c) {
  return whole(c,
               in_layout(c, real(c, 0),
                         [&](const Tensor& x) {
                           c.check(x.rank() > 2,
                                   "it takes a batch, channels and spatial axes; got shape ",
                                   x.shape());
                           Ints axes;
                           for (int64_t i = 2; i < x.rank(); ++i) axes.push_back(i);
                           return mean(x, axes, true);
                         }),
               3);
}

Tensors import_conv(Call& c) {
  return {in_layout(c, c.in(0), [&](const Tensor& x) {
    return quantized_conv({x, c.in(1), c.in_or(2, Tensor())},
                          {c.in(3), c.in(4), c.in_or(5, Tensor())}, c.in_or(8, Tensor()), c.in(6),
                          c.in(7), convolution_window(c, x, c.in(3)));
  })};
}

// ---- Products.

// Inputs: a, its scale and zero point; b and its own; a bias of int32, in units of both scales; the
// result's scale and zero point, or none for floats.
Tensors import_gemm(Call& c) {
  const auto factor = [&](size_t i, const char* turned) {
    c.check(c.in(i).rank() == 2, "input ", i, " has ", c.in(i).rank(), " axes and must have 2");
    return c.flag(turned, false) ? transpose(c.in(i), 0, 1) : c.in(i);
  };
  Tensor total = matmul_integer(factor(0, "transA"), c.in_or(2, Tensor()), factor(3, "transB"),
                                c.in_or(5, Tensor()));
  if (c.has(6)) total = total + c.in(6);
  const Tensor scale = parameters(c, 1).scale * c.in(4);
  const Tensor y =
      cast(total, scale.dtype()) * scale * number(c, static_cast<double>(c.real_attr("alpha", 1)));
  if (!c.has(7)) return {y};
  return {quantize(y, parameters(c, 7), c.in(8).dtype())};
}

Tensor centred(const Call& c, size_t i) {
  const Tensor wide = cast(c.in(i), kInt32);
  return c.has(i + 1) ? wide - cast(c.in(i + 1), kInt32) : wide;
}

Tensors import_mul_integer(Call& c) {
  return {centred(c, 0) * centred(c, 2)};
}

Tensors import_reduce_sum_integer(Call& c) {
  const Tensor x = cast(c.in(0), c.in(0).dtype().is_unsigned() ? kUInt32 : kInt32);
  return {sum_in_dtype(x, axes_of(c.ints_attr("axes", every_axis(x.rank())), x.rank()),
                       c.flag("keepdims", true))};
}

Tensors import_matmul_integer16(Call& c) {
  return {matmul_integer(c.in(0), Tensor(), c.in(1), Tensor())};
}

// ---- Weights of few bits, with a scale for each block of elements.

int64_t bits_of(const Call& c) {
  const int64_t bits = c.attr("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) c.unsupported("weights of ", bits, " bits");
  return bits;
}

int64_t block_of(const Call& c, int64_t fallback) {
  const int64_t block = c.attr("block_size", fallback);
  c.check(block >= 16 && (block & (block - 1)) == 0, "the attribute block_size is ", block,
          "; wanted a power of 2 from 16 on");
  return block;
}

// [rows, blocks] of a tensor that may have one axis.
Tensor by_block(const Call& c, size_t i, int64_t rows, int64_t blocks) {
  const Tensor& t = c.in(i);
  const bool is_whole = t.rank() == 2 ? dim_of(t, 0) == rows && dim_of(t, 1) == blocks
                                      : t.rank() == 1 && dim_of(t, 0) == rows * blocks;
  c.check(is_whole, "input ", i, " of shape ", t.shape(), " for ", rows, " rows of ", blocks,
          " elements");
  return reshape(t, to_shape({rows, blocks}));
}

// Inputs: a, packed weights [columns, blocks, bytes], their scales and zero points, the block of
// each row, a bias.
Tensors import_matmul_few_bits(Call& c) {
  const int64_t k = c.attr("K"), n = c.attr("N"), bits = bits_of(c), block = block_of(c, 0);
  constexpr int64_t kInBytes = 4;  // the accuracy level that allows int8 for a
  const int64_t level = c.attr("accuracy_level", 0);
  if (c.attr("weight_prepacked", 0) != 0) c.unsupported("weights in a device's own layout");
  c.check(k > 0 && n > 0, "a product with ", k, " rows and ", n, " columns");
  const int64_t blocks = (k + block - 1) / block, bytes = block * bits / 8;
  const Tensor& b = c.in(1);
  c.check(product(b.shape()).value() == n * blocks * bytes, "weights of shape ", b.shape(),
          "; wanted ", list_text({n, blocks, bytes}));
  const Tensor packed = reshape(b, to_shape({n, blocks * bytes}));
  Tensor scale = by_block(c, 2, n, blocks), zero, w;
  const bool is_packed = c.has(3) && c.in(3).dtype() == kUInt8;
  if (c.has(3)) zero = by_block(c, 3, n, is_packed ? (blocks * bits + 7) / 8 : blocks);
  const Tensor& a = c.in(0);
  c.check(a.rank() > 0 && decide_equal(a.shape().back(), k), "input 0 of shape ", a.shape(),
          " for a product with ", k, " rows");
  if (level == kInBytes && !c.has(4)) {
    if (is_packed) zero = slice_axis(unpack_bits(zero, bits), 1, 0, blocks);
    const Tensor y = matmul_packed(a, reshape(b, to_shape({n, blocks, bytes})), bits, scale, zero);
    return {c.has(5) ? y + c.in(5) : y};
  }
  if (c.has(4)) {
    // The blocks are any rows, that input 4 names.
    if (is_packed) zero = slice_axis(unpack_bits(zero, bits), 1, 0, blocks);
    scale = gather(scale, c.in(4), 1);
    if (zero) zero = cast(gather(zero, c.in(4), 1), scale.dtype());
    w = dequantize_packed(slice_axis(packed, 1, 0, k * bits / 8), bits, scale, zero, 1);
  } else {
    w = slice_axis(dequantize_packed(packed, bits, scale, zero, block), 1, 0, k);
  }
  const Tensor y = matmul(a, transpose(cast(w, a.dtype()), 0, 1));
  return {c.has(5) ? y + c.in(5) : y};
}

// The sixteen numbers of bitsandbytes' formats of 4 bits: fp4, then nf4.
constexpr float kBnb4[2][16] = {
    {0.0f, 5.208333333e-03f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f,
     -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f},
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
     -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
     0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
     0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f}};

// Inputs: a; weights [columns * rows / 2] whose high bits come first; the greatest of each block.
Tensors import_matmul_bnb4(Call& c) {
  const int64_t k = c.attr("K"), n = c.attr("N"), block = block_of(c, 0);
  const int64_t kind = c.attr("quant_type");
  c.pass_over({"training_mode"});
  c.check(kind == 0 || kind == 1, "the attribute quant_type is ", kind, "; wanted 0 or 1");
  c.check(k > 0 && n > 0 && (k * n) % 2 == 0 && c.in(1).rank() == 1 &&
              dim_of(c.in(1), 0) == k * n / 2 && c.in(2).rank() == 1 &&
              dim_of(c.in(2), 0) == (k * n + block - 1) / block,
          "weights of shape ", c.in(1).shape(), " in blocks of shape ", c.in(2).shape(), " for ", k,
          " rows and ", n, " columns");
  const Tensor table = from_data(c.context(), kFloat32, {16}, kBnb4[kind], sizeof kBnb4[kind]);
  const Tensor halves = flatten(flip(reshape(unpack_bits(c.in(1), 4), {-1, 2}), {1}));
  const Tensor numbers = cast(gather(table, cast(halves, kInt64), 0), c.in(2).dtype());
  const int64_t blocks = dim_of(c.in(2), 0), missing = blocks * block - k * n;
  const Tensor by_block = reshape(pad(numbers, {0}, {missing}), to_shape({blocks, block}));
  const Tensor all = flatten(by_block * unsqueeze(c.in(2), {1}));
  const Tensor w = cast(slice_axis(all, 0, 0, k * n), c.in(0).dtype());
  return {matmul(
      c.in(0), c.flag("transB", true) ? transpose(reshape(w, {n, k}), 0, 1) : reshape(w, {k, n}))};
}

// Inputs: packed rows, which of them, their scales and zero points.
Tensors import_gather_blocks(Call& c) {
  const Tensor& data = c.in(0);
  if (data.dtype() != kUInt8) c.unsupported("data of ", data.dtype());
  const int64_t rank = data.rank();
  const int64_t bits = bits_of(c), block = block_of(c, 128);
  c.check(axis_of(c.attr("gather_axis", 0), rank) == 0 &&
              axis_of(c.attr("quantize_axis", 1), rank) == rank - 1,
          "packed rows are gathered along the first axis and packed along the last");
  const auto rows = [&](size_t i) { return gather(c.in(i), c.in(1), 0); };
  return {dequantize_packed(rows(0), bits, rows(2), c.has(3) ? rows(3) : Tensor(), block)};
}

// clang-format off
constexpr Row kRows[] = {
    {"QLinearAdd",               1, 1, import_add, 0, nullptr, kContributed},
    {"QLinearMul",               1, 1, import_mul, 0, nullptr, kContributed},
    {"QLinearSigmoid",           1, 1, import_sigmoid, 0, nullptr, kContributed},
    {"QLinearLeakyRelu",         1, 1, import_leaky_relu, 0, nullptr, kContributed},
    {"QLinearSoftmax",           1, 1, import_softmax, 0, nullptr, kContributed},
    {"QLinearReduceMean",        1, 1, import_reduce_mean, 0, nullptr, kContributed},
    {"QLinearWhere",             1, 1, import_where, 0, nullptr, kContributed},
    {"QLinearConcat",            1, 1, import_concat, 0, nullptr, kContributed},
    {"QLinearAveragePool",       1, 1, import_average_pool, 0, nullptr, kContributed},
    {"QLinearGlobalAveragePool", 1, 1, import_global_average_pool, 0, nullptr, kContributed},
    {"QLinearConv",              1, 1, import_conv, 0, nullptr, kContributed},
    {"QGemm",                    1, 1, import_gemm, 0, nullptr, kContributed},
    {"MulInteger",               1, 1, import_mul_integer, 0, nullptr, kContributed},
    {"ReduceSumInteger",         1, 1, import_reduce_sum_integer, 0, nullptr, kContributed},
    {"MatMulInteger16",          1, 1, import_matmul_integer16, 0, nullptr, kContributed},
    {"MatMulNBits",              1, 1, import_matmul_few_bits, 0, nullptr, kContributed},
    {"MatMulBnb4",               1, 1, import_matmul_bnb4, 0, nullptr, kContributed},
    {"GatherBlockQuantized",     1, 1, import_gather_blocks, 0, nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> contributed_quantized_rows() {
  return kRows;
}

}  // namespace tiny::onnx
