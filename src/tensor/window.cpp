#include "tensor/window.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/window_options.h"

namespace tiny {

namespace {

// `node` with axis `axis` replaced by `axes`, of the same number of elements.
UOp with_axes(const UOp& node, size_t axis, const Shape& axes) {
  Shape shape = shape_of(node);
  shape.erase(shape.begin() + static_cast<int64_t>(axis));
  shape.insert(shape.begin() + static_cast<int64_t>(axis), axes.begin(), axes.end());
  return make_reshape(node, shape);
}

// The first `count` elements of an axis.
UOp first_of(const UOp& node, size_t axis, const Dim& count) {
  const Shape& shape = shape_of(node);
  Shape end = shape;
  end[axis] = count;
  return make_shrink(node, Shape(shape.size(), Dim(0)), end);
}

UOp repeated(const UOp& node, size_t axis, int64_t times) {
  const Dim size = shape_of(node)[axis];
  const UOp rows = with_axes(node, axis, {1, size});
  Shape shape = shape_of(rows);
  shape[axis] = times;
  // [times, size] becomes one axis.
  Shape joined = shape_of(node);
  joined[axis] = Dim(times) * size;
  return make_reshape(make_expand(rows, shape), joined);
}

// The axis's length that rows need at least, in whole axes: m * size + dilation >= count * stride.
int64_t repeats_in_row(const Dim& size, int64_t stride, int64_t dilation, const Dim& count) {
  const Dim reach = count * Dim(stride) - dilation;
  if (reach.is_const() && size.is_const())
    return std::max<int64_t>(1, ceil_div(reach.value(), size.value()));
  // Windows lie inside the axis, but for the stride behind the last: 1 + stride is always enough.
  int64_t m = 1;
  while (m <= stride && lower_bound(size * Dim(m) - reach) < 0) ++m;
  return m;
}

// Axis `axis` of `size` elements as [kernel, count].
//
// The axis is repeated and cut into rows that are `dilation` longer than a multiple of its size, so
// that row k starts k * dilation further on:  element (k, o) is k * (size * m + dilation) + o *
// stride, modulo the size.
UOp window_axis(const UOp& node, size_t axis, int64_t kernel, int64_t stride, int64_t dilation,
                const Dim& count) {
  const Dim size = shape_of(node)[axis];
  if (stride == kernel && dilation == 1) {
    // Windows side by side.
    const UOp split =
        with_axes(first_of(node, axis, count * Dim(kernel)), axis, {count, Dim(kernel)});
    Ints axes = every_axis(std::ssize(shape_of(split)));
    std::swap(axes[axis], axes[axis + 1]);
    return make_permute(split, axes);
  }
  decide_less_equal(1, size);
  const int64_t m = repeats_in_row(size, stride, dilation, count);
  const Dim row = size * Dim(m) + dilation;
  const int64_t more =
      ceil_div(checked_mul(kernel, dilation, "a window"), std::max<int64_t>(lower_bound(size), 1));
  const int64_t times = checked_add(checked_mul(kernel, m, "a window"), more, "a window");
  UOp rows = first_of(repeated(node, axis, times), axis, Dim(kernel) * row);
  rows = first_of(with_axes(rows, axis, {Dim(kernel), row}), axis + 1, count * Dim(stride));
  if (stride == 1) return rows;
  rows = first_of(with_axes(rows, axis + 1, {count, Dim(stride)}), axis + 2, 1);
  return with_axes(rows, axis + 2, {});
}

}  // namespace

Dim window_count(const Dim& size, int64_t kernel, int64_t stride, int64_t dilation,
                 bool ceil_mode) {
  const int64_t reach = checked_add(checked_mul(dilation, kernel - 1, "a window"), 1, "a window");
  if (!decide_less_equal(reach, size)) return 0;
  const Dim rest = size - reach;
  return floor_div(ceil_mode ? rest + (stride - 1) : rest, stride) + 1;
}

Tensor windows(const Tensor& x, const Ints& kernel, const Ints& strides, const Ints& dilations,
               const Shape& counts) {
  const size_t n = kernel.size();
  const size_t lead = x.shape().size() - n;
  UOp node = x.node();
  // From the last axis on, so that those before keep their places; [kernel, count] for each.
  for (size_t i = n; i-- > 0;)
    node = window_axis(node, lead + i, kernel[i], strides[i], dilations[i], counts[i]);
  Ints order = every_axis(static_cast<int64_t>(lead));
  for (size_t i = 0; i < n; ++i) order.push_back(static_cast<int64_t>(lead + 2 * i + 1));
  for (size_t i = 0; i < n; ++i) order.push_back(static_cast<int64_t>(lead + 2 * i));
  return x.with(make_permute(node, order));
}

FullWindowOptions complete(const WindowOptions& options, size_t spatial, const char* what) {
  const auto filled = [&](const Ints& list, int64_t otherwise, int64_t least, const char* name) {
    if (list.empty()) return Ints(spatial, otherwise);
    require(list.size() == spatial, Status::Shape, what, ": ", name, " ", list_text(list), " for ",
            spatial, " spatial axes");
    for (int64_t v : list)
      require(v >= least, Status::InvalidArgument, what, ": ", name, " ", list_text(list),
              "; each at least ", least);
    return list;
  };
  return {filled(options.strides, 1, 1, "strides"), filled(options.dilations, 1, 1, "dilations"),
          filled(options.before, 0, INT64_MIN, "pads before"),
          filled(options.after, 0, INT64_MIN, "pads after")};
}

Shape spatial_sizes(const Tensor& x, size_t spatial, const char* what) {
  require(x.shape().size() > spatial, Status::Shape, what, " of shape ", x.shape(), " with ",
          spatial, " spatial axes");
  return Shape(x.shape().end() - static_cast<int64_t>(spatial), x.shape().end());
}

Tensor pad_spatial(const Tensor& x, const Ints& before, const Ints& after, double value) {
  Shape front(x.shape().size(), Dim(0));
  Shape back = front;
  for (size_t i = 0; i < before.size(); ++i) {
    front[front.size() - before.size() + i] = before[i];
    back[back.size() - after.size() + i] = after[i];
  }
  return pad(x, front, back, value);
}

namespace {

// [.., m] with one axis of size 1 for every spatial axis.
Tensor beside_space(const Tensor& bias, size_t spatial) {
  Shape shape = bias.shape();
  shape.insert(shape.end(), spatial, Dim(1));
  return reshape(bias, shape);
}

Tensor add_bias(const Tensor& out, const Tensor& bias, size_t spatial, DType dtype) {
  if (!bias) return out;
  require(bias.rank() == 1 && decide_equal(bias.shape()[0], out.shape()[1]), Status::Shape,
          "conv: bias ", bias.shape(), " for ", out.shape()[1], " channels");
  return add(out, cast(beside_space(bias, spatial), dtype));
}

struct ConvTypes {
  DType result;
  DType wide;
};

ConvTypes conv_types(const Tensor& x, const Tensor& weight, const Tensor& bias, const char* what) {
  std::vector<Tensor> operands{x, weight};
  if (bias) operands.push_back(bias);
  require_one_context(operands);
  require(x.rank() >= 2 && x.rank() == weight.rank(), Status::Shape, what, " of x ", x.shape(),
          " with weight ", weight.shape());
  const DType dtype = common_dtype(operands);
  return {dtype, accumulator_dtype(dtype)};
}

Dim divided(const Dim& channels, int64_t groups, const char* what) {
  require(groups >= 1, Status::InvalidArgument, what, ": groups is ", groups);
  const auto exact = divide_exactly(channels, groups);
  require(exact || channels.value() % groups == 0, Status::Shape, what, ": ", channels,
          " channels in ", groups, " groups");
  return *exact;
}

}  // namespace

Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const WindowOptions& options,
            int64_t groups) {
  const ConvTypes types = conv_types(x, weight, bias, "conv");
  const auto spatial = static_cast<size_t>(x.rank() - 2);
  const FullWindowOptions o = complete(options, spatial, "conv");
  const Ints kernel = const_dims(spatial_sizes(weight, spatial, "conv"));
  const Tensor padded = pad_spatial(cast(x, types.wide), o.before, o.after, 0);
  const Shape sizes = spatial_sizes(padded, spatial, "conv");
  const Dim each = divided(x.shape()[1], groups, "conv");
  const Dim made = divided(weight.shape()[0], groups, "conv");
  require(decide_equal(weight.shape()[1], each), Status::Shape, "conv: weight ", weight.shape(),
          " for ", x.shape()[1], " channels in ", groups, " groups");
  Shape counts;
  for (size_t i = 0; i < spatial; ++i) {
    counts.push_back(window_count(sizes[i], kernel[i], o.strides[i], o.dilations[i]));
    require(kernel[i] > 0 && !counts[i].is(0), Status::Shape, "conv: kernel ", list_text(kernel),
            " does not fit into ", padded.shape());
  }
  // [n, g, 1, counts.., c, kernel..] * [1, g, m, 1.., c, kernel..], summed over channels and
  // kernel.
  const Tensor view = windows(padded, kernel, o.strides, o.dilations, counts);
  Shape split{x.shape()[0], Dim(groups), Dim(1), each};
  split.insert(split.end(), view.shape().begin() + 2, view.shape().end());
  Ints order{0, 1, 2};
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(4 + i));
  order.push_back(3);
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(4 + spatial + i));
  const Tensor left = x.with(make_permute(make_reshape(view.node(), split), order));
  Shape filters{Dim(1), Dim(groups), made};
  filters.insert(filters.end(), spatial, Dim(1));
  filters.push_back(each);
  filters.insert(filters.end(), kernel.begin(), kernel.end());
  const Tensor right = x.with(make_reshape(cast(weight, types.wide).node(), filters));
  Ints folded;
  for (size_t i = 0; i <= spatial; ++i) folded.push_back(static_cast<int64_t>(3 + spatial + i));
  const Tensor total = reduce_as_is(mul(left, right), Op::Add, folded, false);
  Shape shape{x.shape()[0], weight.shape()[0]};
  shape.insert(shape.end(), counts.begin(), counts.end());
  return cast(add_bias(reshape(total, shape), bias, spatial, types.wide), types.result);
}

namespace {

// `stride` - 1 zeros between neighbours along the last axes.
Tensor spread_out(const Tensor& x, const Ints& strides) {
  UOp node = x.node();
  const size_t lead = x.shape().size() - strides.size();
  for (size_t i = 0; i < strides.size(); ++i) {
    const Dim size = shape_of(node)[lead + i];
    if (strides[i] == 1 || size.is(0)) continue;
    decide_less_equal(1, size);
    const UOp column = with_axes(node, lead + i, {size, 1});
    Shape none(shape_of(column).size(), Dim(0));
    Shape more = none;
    more[lead + i + 1] = strides[i] - 1;
    const UOp rows = with_axes(make_pad(column, none, more), lead + i + 1, {strides[i]});
    Shape joined = shape_of(node);
    joined[lead + i] = size * Dim(strides[i]);
    node = first_of(make_reshape(rows, joined), lead + i, (size - 1) * Dim(strides[i]) + 1);
  }
  return x.with(node);
}

}  // namespace

Tensor conv_transpose(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const WindowOptions& options, const Ints& output_padding, int64_t groups) {
  conv_types(x, weight, bias, "conv_transpose");
  const auto spatial = static_cast<size_t>(x.rank() - 2);
  const FullWindowOptions o = complete(options, spatial, "conv_transpose");
  const Ints kernel = const_dims(spatial_sizes(weight, spatial, "conv_transpose"));
  spatial_sizes(x, spatial, "conv_transpose");
  require(output_padding.empty() || output_padding.size() == spatial, Status::Shape,
          "conv_transpose: output padding ", list_text(output_padding), " for ", spatial,
          " spatial axes");
  require(decide_equal(weight.shape()[0], x.shape()[1]), Status::Shape, "conv_transpose: weight ",
          weight.shape(), " for ", x.shape()[1], " channels");
  const Dim each = divided(x.shape()[1], groups, "conv_transpose");
  // A convolution of the spread input with the mirrored kernel, input and output channels
  // exchanged.
  WindowOptions inner;
  inner.dilations = o.dilations;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = checked_mul(o.dilations[i], kernel[i] - 1, "a window");
    inner.before.push_back(reach - o.before[i]);
    inner.after.push_back(reach - o.after[i] + (output_padding.empty() ? 0 : output_padding[i]));
  }
  Shape split{Dim(groups), each};
  split.insert(split.end(), weight.shape().begin() + 1, weight.shape().end());
  Shape joined{weight.shape()[1] * Dim(groups), each};
  joined.insert(joined.end(), kernel.begin(), kernel.end());
  Ints space;
  for (size_t i = 0; i < spatial; ++i) space.push_back(static_cast<int64_t>(i) + 2);
  const UOp exchanged = [&] {
    Ints order = every_axis(static_cast<int64_t>(split.size()));
    std::swap(order[1], order[2]);
    return make_permute(make_reshape(weight.node(), split), order);
  }();
  const Tensor mirrored = flip(weight.with(make_reshape(exchanged, joined)), space);
  return conv(spread_out(x, o.strides), mirrored, bias, inner, groups);
}

}  // namespace tiny
