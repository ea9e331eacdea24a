// Rows of layers of networks: convolutions, pools, normalisation, cells, a loss.  A backward row
// whose forward pass is one value asks the engine for the gradient of that.
#include <ATen/native/Pool.h>
#include <ATen/native/layer_norm.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "call.h"
#include "windows.h"

namespace tiny_torch {

namespace {

using V = Value;

at::MemoryFormat format_of(const Call& c, size_t a, size_t b) {
  const at::MemoryFormat first = c.tensor(a).suggest_memory_format();
  return first != at::MemoryFormat::Contiguous ? first : c.tensor(b).suggest_memory_format();
}

// ---- Convolutions -------------------------------------------------------------------------------

struct Convolution {
  WindowSizes sizes;
  bool is_transposed = false;
};
// stride, padding, dilation, transposed, output_padding, groups from `at` on.
Convolution convolution_of(const Call& c, size_t at, int64_t axes) {
  Convolution made;
  made.sizes.strides = for_axes(c.ints(at), axes, 1);
  made.sizes.padding = for_axes(c.ints(at + 1), axes, 0);
  made.sizes.dilations = for_axes(c.ints(at + 2), axes, 1);
  made.is_transposed = c.flag(at + 3);
  if (made.is_transposed) made.sizes.output_padding = for_axes(c.ints(at + 4), axes, 0);
  made.sizes.groups = c.integer(at + 5);
  return made;
}
V per_channel(const V& a, int64_t rank) {
  Sizes shape(static_cast<size_t>(rank), 1);
  shape[1] = a.numel();
  return reshape(a, shape);
}
Sizes all_but(int64_t axis, int64_t rank) {
  Sizes axes;
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis) axes.push_back(i);
  return axes;
}
void convolve(Call& c) {  // input, weight, bias, stride, ..
  const V x = c.value(0);
  const Convolution made = convolution_of(c, 3, x.rank() - 2);
  // Floats of 16 bits are rounded with the bias, once.
  const tiny_dtype dtype = c.has(2) ? wide(x.dtype()) : x.dtype();
  V y = convolution(cast(x, dtype), cast(c.value(1), dtype), made.sizes, made.is_transposed);
  if (c.has(2)) y = y + cast(per_channel(c.value(2), x.rank()), dtype);
  c.give(0, cast(y, x.dtype()), format_of(c, 0, 1));
}
void convolve_backward(Call& c) {  // grad_output, input, weight, stride, .., output_mask
  const V grad = c.value(0);
  const V x = detach(c.value(1));
  const V weight = detach(c.value(2));
  const Convolution made = convolution_of(c, 3, x.rank() - 2);
  const auto mask = c.argument(9).toBoolList();
  std::vector<V> wanted;
  if (mask[0]) wanted.push_back(x);
  if (mask[1]) wanted.push_back(weight);
  std::vector<V> found;
  if (!wanted.empty())
    found = gradients(convolution(x, weight, made.sizes, made.is_transposed), grad, wanted);
  size_t next = 0;
  if (mask[0]) c.give(0, found[next++], format_of(c, 1, 2));
  if (mask[1]) c.give(1, found[next++], c.tensor(2).suggest_memory_format());
  if (mask[2])
    c.give(2, cast(reduce(TINY_SUM, cast(grad, wide(grad.dtype())), all_but(1, grad.rank()), false),
                   grad.dtype()));
}

// ---- Pools --------------------------------------------------------------------------------------

// kernel, stride, padding from `at` on.
WindowSizes pool_of(const Call& c, size_t at, int64_t axes) {
  WindowSizes sizes;
  sizes.kernel = for_axes(c.ints(at), axes, 1);
  sizes.strides = c.ints(at + 1).empty() ? sizes.kernel : for_axes(c.ints(at + 1), axes, 1);
  sizes.padding = for_axes(c.ints(at + 2), axes, 0);
  return sizes;
}
WindowSizes max_pool_of(const Call& c, size_t at, int64_t axes) {
  WindowSizes sizes = pool_of(c, at, axes);
  sizes.dilations = for_axes(c.ints(at + 3), axes, 1);
  if (c.flag(at + 4)) sizes.flags |= TINY_FLAG_CEIL_MODE;
  return sizes;
}
// PyTorch's own words for windows of three axes; for those of two its functions for out= say them.
void check_max_pool(const at::Tensor& self, const WindowSizes& window, bool ceil) {
  int64_t in[3], out[3];
  int k[3], step[3], pads[3], apart[3];
  for (size_t i = 0; i < 3; ++i) {
    k[i] = static_cast<int>(window.kernel[i]);
    step[i] = static_cast<int>(window.strides[i]);
    pads[i] = static_cast<int>(window.padding[i]);
    apart[i] = static_cast<int>(window.dilations[i]);
    in[i] = self.size(static_cast<int64_t>(i) - 3);
    out[i] =
        at::native::pooling_output_shape<int64_t>(in[i], k[i], pads[i], step[i], apart[i], ceil);
  }
  at::native::pool3d_shape_check(self, self.size(-4), k[0], k[1], k[2], step[0], step[1], step[2],
                                 pads[0], pads[1], pads[2], apart[0], apart[1], apart[2], in[0],
                                 in[1], in[2], out[0], out[1], out[2],
                                 "max_pool3d_with_indices_out_cpu_template()");
}
template <int64_t axes>
void max_pool_both(Call& c) {  // self, kernel, stride, padding, dilation, ceil
  const V x = c.value(0);
  const WindowSizes sizes = max_pool_of(c, 1, axes);
  if constexpr (axes == 3) check_max_pool(c.tensor(0), sizes, c.flag(5));
  const at::MemoryFormat format = c.tensor(0).suggest_memory_format();
  const V pooled = max_pool(x, sizes);
  c.give(0, pooled, format);
  // The backward pass does not ask for them either.
  c.give_later(
      1, pooled.shape(), at::kLong, [x, sizes] { return max_pool_places(x, sizes); }, format);
}
template <int64_t axes>
void max_pool_backward(Call& c) {  // grad, self, kernel, stride, padding, dilation, ceil, indices
  const V x = detach(c.value(1));
  c.give(0, gradients(max_pool(x, max_pool_of(c, 2, axes)), c.value(0), {&x, 1})[0],
         c.tensor(1).suggest_memory_format());
}
// The sums of windows: zeros around x, as far as the windows of a result of `sizes` reach.
V window_sums(const V& x, WindowSizes window, const Sizes& sizes) {
  Sizes before(static_cast<size_t>(x.rank()), 0);
  Sizes after = before;
  for (size_t k = 0; k < window.kernel.size(); ++k) {
    const size_t axis = before.size() - window.kernel.size() + k;
    const int64_t reached = (sizes[axis] - 1) * window.strides[k] + window.kernel[k];
    before[axis] = window.padding[k];
    after[axis] = reached - x.size(static_cast<int64_t>(axis)) - window.padding[k];
    window.padding[k] = 0;
  }
  const int64_t count =
      std::accumulate(window.kernel.begin(), window.kernel.end(), int64_t{1}, std::multiplies<>());
  return average_pool(pad(x, before, after, 0), window) * static_cast<double>(count);
}
// kernel, stride, padding, ceil, count_include_pad, divisor_override from `at` on; the result's
// sizes.
template <int64_t axes>
V average(const Call& c, size_t at, const V& x, at::IntArrayRef sizes) {
  WindowSizes window = pool_of(c, at, axes);
  if (c.has(at + 5))
    return window_sums(x, window, sizes.vec()) / static_cast<double>(c.integer(at + 5));
  if (c.flag(at + 3)) window.flags |= TINY_FLAG_CEIL_MODE;
  if (c.flag(at + 4)) window.flags |= TINY_FLAG_COUNT_INCLUDE_PAD;
  return average_pool(x, window);
}
template <int64_t axes>
void average_pool_of(Call& c) {
  const V x = c.value(0);
  c.give(0, cast(average<axes>(c, 1, cast(x, wide(x.dtype())), c.target(0).sizes()), x.dtype()),
         c.tensor(0).suggest_memory_format());
}
template <int64_t axes>
void average_pool_backward(Call& c) {  // grad, self, ..
  const V x = detach(c.value(1));
  c.give(0, gradients(average<axes>(c, 2, x, c.tensor(0).sizes()), c.value(0), {&x, 1})[0],
         c.tensor(1).suggest_memory_format());
}
// The means of windows that divide an axis as evenly as they can: a product with a matrix of
// shares.
V shared_out(const V& x, int64_t axis, int64_t count) {
  const int64_t size = x.size(axis);
  if (size == count) return x;
  std::vector<float> shares(static_cast<size_t>(size * count), 0.f);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * size / count;
    const int64_t end = ((i + 1) * size + count - 1) / count;
    for (int64_t k = begin; k < end; ++k)
      shares[static_cast<size_t>(k * count + i)] = 1.f / static_cast<float>(end - begin);
  }
  const int64_t sizes[] = {size, count};
  const V matrix =
      cast(from_data(TINY_FLOAT32, sizes, shares.data(), shares.size() * sizeof(float)), x.dtype());
  return transpose(matmul(transpose(x, axis, -1), matrix), axis, -1);
}
V adaptive(const V& x, const Sizes& sizes) {
  const auto count = static_cast<int64_t>(sizes.size());
  WindowSizes window;
  bool is_even = true;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t size = x.size(k - count);
    const int64_t wanted = sizes[static_cast<size_t>(k)];
    is_even = is_even && size % wanted == 0;
    window.kernel.push_back(size / std::max<int64_t>(wanted, 1));
  }
  V y = x;
  if (is_even) {
    window.strides = window.kernel;
    window.padding.assign(sizes.size(), 0);
    return average_pool(x, window);
  }
  for (int64_t k = 0; k < count; ++k)
    y = shared_out(y, x.rank() + k - count, sizes[static_cast<size_t>(k)]);
  return y;
}
void adaptive_pool(Call& c) {
  const V x = c.value(0);
  c.give(0, cast(adaptive(cast(x, wide(x.dtype())), c.ints(1)), x.dtype()),
         c.tensor(0).suggest_memory_format());
}
template <int64_t axes>
void adaptive_pool_backward(Call& c) {  // grad, self
  const tiny_dtype dtype = c.value(1).dtype();
  const V grad = cast(c.value(0), wide(dtype));
  const V x = cast(detach(c.value(1)), wide(dtype));
  const Sizes shape = grad.shape();
  const Sizes sizes(shape.end() - axes, shape.end());
  c.give(0, cast(gradients(adaptive(x, sizes), grad, {&x, 1})[0], dtype),
         c.tensor(1).suggest_memory_format());
}

// ---- Normalisation ------------------------------------------------------------------------------

struct Normal {
  V apart;          // from the mean, in 32 bits at least
  V mean, inverse;  // of the deviation, with axes of size 1
};
Normal normal_of(const V& given, const Sizes& axes, double epsilon) {
  const V x = cast(given, wide(given.dtype()));
  const V mean = reduce(TINY_MEAN, x, axes, true);
  const V apart = x - mean;
  const V variance = reduce(TINY_MEAN, apart * apart, axes, true);
  return {apart, mean, unary(TINY_RSQRT, variance + constant(x.dtype(), epsilon))};
}
// d(loss)/d(x) of (x - mean) * inverse, given that of the result, where both are made of x.
V normal_backward(const V& grad, const V& unit, const V& inverse, const Sizes& axes) {
  return (grad - reduce(TINY_MEAN, grad, axes, true) -
          unit * reduce(TINY_MEAN, grad * unit, axes, true)) *
         inverse;
}
V flat(const V& a) {
  const int64_t count = a.numel();
  return reshape(a, {&count, 1});
}

void move_towards(const at::Tensor& running, const V& now, double momentum) {
  const V old = read(running);
  const V factor = number(now.dtype(), momentum);
  write(running, cast(old, now.dtype()) * number(now.dtype(), 1 - momentum) + now * factor);
}
// By running_mean and running_var, which are at `running`.
void batch_norm_by_running(Call& c, size_t running, double epsilon) {
  const V x = c.value(0);
  const V weight = c.has(1) ? c.operand(1) : V();
  const V bias = c.has(2) ? c.operand(2) : V();
  c.give(0, batch_norm(x, weight, bias, c.operand(running), c.operand(running + 1), epsilon),
         c.tensor(0).suggest_memory_format());
  const at::ScalarType type = scalar_type_of(wide(x.dtype()));
  for (const size_t saved : {1, 2}) c.give(saved, empty_tensor({0}, type));
}
// running_mean and running_var at `running`, or none.
void batch_norm_by_itself(Call& c, int64_t running, double momentum, double epsilon) {
  const V given = c.value(0);
  const int64_t rank = given.rank();
  const Sizes axes = all_but(1, rank);
  const Normal normal = normal_of(given, axes, epsilon);
  const auto first = static_cast<size_t>(running);
  if (running >= 0 && c.has(first)) {
    const V count = integer(TINY_INT64, given.numel() / given.size(1));
    const V& apart = normal.apart;
    const V unbiased =
        reduce(TINY_SUM, apart * apart, axes, false) / cast(count - 1.0, apart.dtype());
    move_towards(c.tensor(first), flat(normal.mean), momentum);
    move_towards(c.tensor(first + 1), unbiased, momentum);
  }
  V y = normal.apart * normal.inverse;
  if (c.has(1)) y = y * per_channel(c.value(1), rank);
  if (c.has(2)) y = y + per_channel(c.value(2), rank);
  c.give(0, cast(y, given.dtype()), c.tensor(0).suggest_memory_format());
  c.give(1, flat(normal.mean));
  c.give(2, flat(normal.inverse));
}
void batch_norm(Call& c) {  // input, weight, bias, running_mean, running_var, train, momentum, eps
  constexpr size_t kRunning = 3;
  if (c.flag(5)) return batch_norm_by_itself(c, kRunning, c.real(6), c.real(7));
  batch_norm_by_running(c, kRunning, c.real(7));
}
void batch_norm_backward(
    Call& c) {  // grad, input, weight, running_mean, running_var, mean, invstd, train, eps, mask
  const V given = c.value(1);
  const tiny_dtype dtype = wide(given.dtype());
  const V grad = cast(c.value(0), dtype);
  const int64_t rank = given.rank();
  const Sizes axes = all_but(1, rank);
  const bool is_training = c.flag(7);
  const V mean = cast(c.value(is_training ? 5 : 3), dtype);
  V inverse;
  if (is_training) {
    inverse = cast(c.value(6), dtype);
  } else {
    inverse = unary(TINY_RSQRT, cast(c.value(4), dtype) + constant(dtype, c.real(8)));
  }
  const V unit = (cast(given, dtype) - per_channel(mean, rank)) * per_channel(inverse, rank);
  const auto mask = c.argument(9).toBoolList();
  const V scaled = c.has(2) ? grad * per_channel(cast(c.value(2), dtype), rank) : grad;
  const V factor = per_channel(inverse, rank);
  if (mask[0])
    c.give(0,
           cast(is_training ? normal_backward(scaled, unit, factor, axes) : scaled * factor,
                given.dtype()),
           c.tensor(1).suggest_memory_format());
  const tiny_dtype kept = c.has(2) ? c.value(2).dtype() : given.dtype();
  if (mask[1]) c.give(1, cast(reduce(TINY_SUM, grad * unit, axes, false), kept));
  if (mask[2]) c.give(2, cast(reduce(TINY_SUM, grad, axes, false), kept));
}

Sizes last_axes(int64_t count, int64_t rank) {
  Sizes axes(static_cast<size_t>(count));
  std::iota(axes.begin(), axes.end(), rank - count);
  return axes;
}
void layer_norm(Call& c) {  // input, normalized_shape, weight, bias, eps
  at::native::_check_layer_norm_inputs(c.tensor(0), c.ints(1),
                                       c.has(2) ? c.tensor(2) : at::Tensor(),
                                       c.has(3) ? c.tensor(3) : at::Tensor());
  const V x = c.value(0);
  const int64_t axis = x.rank() - static_cast<int64_t>(c.ints(1).size());
  const double epsilon = c.real(4);
  const V scale = c.has(2) ? c.operand(2) : V();
  const V bias = c.has(3) ? c.operand(3) : V();
  c.give(0, layer_norm(x, scale, bias, axis, epsilon));
  // The backward pass alone looks at them.
  Sizes kept = x.shape();
  std::fill(kept.begin() + axis, kept.end(), 1);
  const at::ScalarType type = scalar_type_of(wide(x.dtype()));
  const auto normal = [=] { return normal_of(x, last_axes(x.rank() - axis, x.rank()), epsilon); };
  c.give_later(1, kept, type, [=] { return normal().mean; });
  c.give_later(2, kept, type, [=] { return normal().inverse; });
}
void layer_norm_backward(
    Call& c) {  // grad, input, normalized_shape, mean, rstd, weight, bias, mask
  const V given = c.value(1);
  const tiny_dtype dtype = wide(given.dtype());
  const V grad = cast(c.value(0), dtype);
  const auto count = static_cast<int64_t>(c.ints(2).size());
  const Sizes axes = last_axes(count, given.rank());
  Sizes outer(static_cast<size_t>(given.rank() - count));
  std::iota(outer.begin(), outer.end(), int64_t{0});
  const V inverse = cast(c.value(4), dtype);
  const V unit = (cast(given, dtype) - cast(c.value(3), dtype)) * inverse;
  const auto mask = c.argument(7).toBoolList();
  const V scaled = c.has(5) ? grad * cast(c.value(5), dtype) : grad;
  if (mask[0]) c.give(0, cast(normal_backward(scaled, unit, inverse, axes), given.dtype()));
  const tiny_dtype kept = c.has(5) ? c.value(5).dtype() : given.dtype();
  if (mask[1]) c.give(1, cast(reduce(TINY_SUM, grad * unit, outer, false), kept));
  if (mask[2]) c.give(2, cast(reduce(TINY_SUM, grad, outer, false), kept));
}

// [n, c, ..] as [n, group, the rest].
V grouped(const V& a, int64_t rows, int64_t groups) {
  const int64_t shape[] = {rows, groups, a.numel() / std::max<int64_t>(rows * groups, 1)};
  return reshape(a, shape);
}
void group_norm(Call& c) {  // input, weight, bias, n, c, hxw, group, eps
  const V x = c.value(0);
  const int64_t rows = c.integer(3);
  const int64_t groups = c.integer(6);
  const double epsilon = c.real(7);
  const V scale = c.has(1) ? c.operand(1) : V();
  const V bias = c.has(2) ? c.operand(2) : V();
  c.give(0, group_norm(x, groups, scale, bias, epsilon), c.tensor(0).suggest_memory_format());
  const int64_t shape[] = {rows, groups};
  const at::ScalarType type = scalar_type_of(wide(x.dtype()));
  const auto normal = [=] { return normal_of(grouped(x, rows, groups), {2}, epsilon); };
  c.give_later(1, shape, type, [=] { return squeeze(normal().mean, 2); });
  c.give_later(2, shape, type, [=] { return squeeze(normal().inverse, 2); });
}
void group_norm_backward(Call& c) {  // grad, input, mean, rstd, weight, n, c, hxw, group, mask
  const V given = c.value(1);
  const tiny_dtype dtype = wide(given.dtype());
  const V grad = cast(c.value(0), dtype);
  const int64_t rows = c.integer(5);
  const int64_t groups = c.integer(8);
  const V inverse = unsqueeze(cast(c.value(3), dtype), 2);
  const V unit =
      (grouped(cast(given, dtype), rows, groups) - unsqueeze(cast(c.value(2), dtype), 2)) * inverse;
  const auto mask = c.argument(9).toBoolList();
  const V scaled = c.has(4) ? grad * per_channel(cast(c.value(4), dtype), given.rank()) : grad;
  if (mask[0])
    c.give(0,
           cast(reshape(normal_backward(grouped(scaled, rows, groups), unit, inverse, {2}),
                        given.shape()),
                given.dtype()),
           c.tensor(1).suggest_memory_format());
  const Sizes axes = all_but(1, given.rank());
  if (mask[1])
    c.give(1,
           cast(reduce(TINY_SUM, grad * reshape(unit, given.shape()), axes, false), given.dtype()));
  if (mask[2]) c.give(2, cast(reduce(TINY_SUM, grad, axes, false), given.dtype()));
}

constexpr Row kWindows[] = {
    {"convolution_overrideable", convolve},
    {"convolution_backward_overrideable", convolve_backward},
    {"max_pool2d_with_indices.out", max_pool_both<2>},
    {"max_pool3d_with_indices", max_pool_both<3>},
    {"max_pool2d_with_indices_backward.grad_input", max_pool_backward<2>},
    {"max_pool3d_with_indices_backward", max_pool_backward<3>},
    {"max_pool3d_with_indices_backward.grad_input", max_pool_backward<3>},
    {"avg_pool2d.out", average_pool_of<2>},
    {"avg_pool3d.out", average_pool_of<3>},
    {"avg_pool2d_backward.grad_input", average_pool_backward<2>},
    {"avg_pool3d_backward.grad_input", average_pool_backward<3>},
    {"_adaptive_avg_pool2d", adaptive_pool},
    {"_adaptive_avg_pool3d", adaptive_pool},
    {"_adaptive_avg_pool2d_backward", adaptive_pool_backward<2>},
    {"_adaptive_avg_pool3d_backward", adaptive_pool_backward<3>},
};

constexpr Row kNorms[] = {
    {"native_batch_norm", batch_norm},
    {"_native_batch_norm_legit", batch_norm},
    {"_native_batch_norm_legit.no_stats",
     [](Call& c) { batch_norm_by_itself(c, -1, c.real(4), c.real(5)); }},
    {"native_batch_norm_backward", batch_norm_backward},
    {"native_layer_norm", layer_norm},
    {"native_layer_norm_backward", layer_norm_backward},
    {"native_group_norm", group_norm},
    {"native_group_norm_backward", group_norm_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_rows(m, kWindows);
  add_rows(m, kNorms);
}

}  // namespace

}  // namespace tiny_torch
