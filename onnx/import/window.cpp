#include "onnx/import/window.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "onnx/import/functions.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// Sizes beyond this are no picture, and products of a few of them still fit.
constexpr int64_t kSizeMax = int64_t{1} << 31;

Ints listed(const Call& c, const char* name, size_t axes, int64_t fallback, int64_t least) {
  const Ints values = c.ints_attr(name, Ints(axes, fallback));
  c.check(values.size() == axes, "the attribute ", name, " has ", values.size(), " values for ",
          axes, " spatial axes");
  for (int64_t v : values)
    c.check(v >= least && v < kSizeMax, "the attribute ", name, " = ", list_text(values));
  return values;
}

// Where the output is to have size n / stride, rounded up, and the rest of the padding goes.
void pad_same(const Ints& spatial, bool upper, Windows& w) {
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
    const int64_t out = ceil_div(spatial[i], w.stride[i]);
    const int64_t total = std::max<int64_t>(0, (out - 1) * w.stride[i] + reach - spatial[i]);
    w.before[i] = upper ? total / 2 : total - total / 2;
    w.after[i] = total - w.before[i];
  }
}

}  // namespace

Windows windows_of(const Call& c, const Ints& spatial, const std::optional<Ints>& kernel) {
  const size_t axes = spatial.size();
  Windows w;
  w.kernel = c.ints_attr("kernel_shape", kernel.value_or(Ints()));
  c.check(w.kernel.size() == axes, "the attribute kernel_shape has ", w.kernel.size(),
          " values for ", axes, " spatial axes");
  for (int64_t k : w.kernel) c.check(k > 0 && k < kSizeMax, "a kernel ", list_text(w.kernel));
  if (kernel)
    c.check(w.kernel == *kernel, "the attribute kernel_shape is ", list_text(w.kernel),
            ", the weights have ", list_text(*kernel));
  w.stride = listed(c, "strides", axes, 1, 1);
  w.dilation = listed(c, "dilations", axes, 1, 1);
  const Ints pads = listed(c, "pads", 2 * axes, 0, 0);
  w.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(axes));
  w.after.assign(pads.begin() + static_cast<int64_t>(axes), pads.end());
  w.extra.assign(axes, 0);
  const std::string mode = c.text_attr("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER")
    pad_same(spatial, mode == "SAME_UPPER", w);
  else if (mode == "VALID")
    w.before = w.after = Ints(axes, 0);
  else
    c.check(mode == "NOTSET", "the attribute auto_pad is \"", mode, "\"");
  const bool up = c.flag("ceil_mode", false);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
    const int64_t room = spatial[i] + w.before[i] + w.after[i] - reach;
    c.check(room >= 0 || up, "a kernel that reaches over ", reach, " elements of ", spatial[i],
            " with pads ", w.before[i], " and ", w.after[i]);
    int64_t count = 1 + (up ? ceil_div(room, w.stride[i]) : floor_div(room, w.stride[i]));
    // A window that would begin in the padding behind does not count.
    if (up && (count - 1) * w.stride[i] >= spatial[i] + w.before[i]) --count;
    c.check(count > 0, "no window fits ", spatial[i], " elements");
    w.extra[i] = std::max<int64_t>(0, (count - 1) * w.stride[i] - room);
    w.count.push_back(count);
  }
  return w;
}

Tensor padded_for(const Tensor& x, const Windows& w) {
  const auto lead = x.rank() - static_cast<int64_t>(w.kernel.size());
  Ints before(static_cast<size_t>(x.rank())), after(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    before[static_cast<size_t>(lead) + i] = w.before[i];
    after[static_cast<size_t>(lead) + i] = w.after[i] + w.extra[i];
  }
  return pad(x, to_shape(before), to_shape(after));
}

namespace {

// One axis [n] as [windows, kernel], where it stands.
UOp sliding_axis(const UOp& x, size_t axis, int64_t kernel, int64_t stride, int64_t dilation,
                 int64_t count) {
  const auto resized = [&](const UOp& u, int64_t size) {
    Shape zero(shape_of(u).size()), end = shape_of(u), more(shape_of(u).size());
    const int64_t n = end[axis].value();
    if (size > n) {
      more[axis] = size - n;
      return make_pad(u, zero, more);
    }
    end[axis] = size;
    return make_shrink(u, zero, end);
  };
  const auto reshaped = [&](const UOp& u, std::initializer_list<int64_t> sizes) {
    Shape s = shape_of(x);
    s.erase(s.begin() + static_cast<int64_t>(axis));
    s.insert(s.begin() + static_cast<int64_t>(axis), sizes.begin(), sizes.end());
    return make_reshape(u, s);
  };
  const auto shrunk = [&](const UOp& u, size_t at, int64_t size) {
    Shape zero(shape_of(u).size()), end = shape_of(u);
    end[at] = size;
    return make_shrink(u, zero, end);
  };
  if (dilation == 1 && kernel <= stride)  // side by side
    return shrunk(reshaped(resized(x, count * stride), {count, stride}), axis + 1, kernel);
  // Rows that are one repetition of the axis and `dilation` long: row k begins at k * dilation.
  const int64_t n = std::max(shape_of(x)[axis].value(), count * stride - dilation);
  const UOp line = resized(x, n);
  const int64_t repeats = ceil_div(checked_mul(kernel, n + dilation, "a window"), n);
  const UOp column = reshaped(line, {1, n});
  Shape wide = shape_of(column);
  wide[axis] = repeats;
  UOp u = reshaped(make_expand(column, wide), {repeats * n});
  u = reshaped(shrunk(u, axis, kernel * (n + dilation)), {kernel, n + dilation});
  // Of every row, the elements 0, stride, .. .
  u = reshaped(shrunk(u, axis + 1, count * stride), {kernel, count, stride});
  u = reshaped(shrunk(u, axis + 2, 1), {kernel, count});
  Ints order(shape_of(u).size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::swap(order[axis], order[axis + 1]);
  return make_permute(u, order);
}

}  // namespace

Tensor sliding(const Tensor& x, const Windows& w) {
  const size_t axes = w.kernel.size();
  const size_t lead = static_cast<size_t>(x.rank()) - axes;
  UOp u = x.node();
  // From the last axis on, so that places before it stay.
  for (size_t i = axes; i-- > 0;)
    u = sliding_axis(u, lead + i, w.kernel[i], w.stride[i], w.dilation[i], w.count[i]);
  Ints order;
  for (size_t i = 0; i < lead; ++i) order.push_back(static_cast<int64_t>(i));
  for (size_t part = 0; part < 2; ++part)
    for (size_t i = 0; i < axes; ++i) order.push_back(static_cast<int64_t>(lead + 2 * i + part));
  return x.with(make_permute(u, order));
}

Tensor convolved(const Tensor& x, const Tensor& weights, int64_t groups, const Windows& w) {
  const Ints in = dims_of(x);
  const Ints shape = dims_of(weights);
  const auto axes = static_cast<int64_t>(w.kernel.size());
  require(groups > 0 && shape[0] % groups == 0 && in[1] == shape[1] * groups, Status::InvalidModel,
          "weights of shape ", list_text(shape), " for ", in[1], " channels in ", groups,
          " groups");
  const int64_t each = shape[0] / groups;
  const DType dtype = x.dtype();
  const DType wide = accumulator_dtype(dtype);
  // [N, g, 1, windows.., C / g, kernel..] * [g, M / g, 1.., C / g, kernel..]
  const Tensor views = sliding(cast(x, wide), w);
  Ints left{in[0], groups, 1, shape[1]};
  left.insert(left.end(), w.count.begin(), w.count.end());
  left.insert(left.end(), w.kernel.begin(), w.kernel.end());
  Ints order{0, 1, 2};
  for (int64_t i = 0; i < axes; ++i) order.push_back(4 + i);
  order.push_back(3);
  for (int64_t i = 0; i < axes; ++i) order.push_back(4 + axes + i);
  const UOp a = make_permute(make_reshape(views.node(), to_shape(left)), order);
  Ints right{groups, each};
  right.insert(right.end(), static_cast<size_t>(axes), 1);
  right.insert(right.end(), shape.begin() + 1, shape.end());
  const UOp b = make_reshape(cast(weights, wide).node(), to_shape(right));
  const Tensor product = x.with(a) * x.with(b);
  Ints summed;
  for (int64_t i = 3 + axes; i < product.rank(); ++i) summed.push_back(i);
  const Tensor total = cast(reduce_as_is(product, Op::Add, summed, false), dtype);
  Ints out{in[0], shape[0]};
  out.insert(out.end(), w.count.begin(), w.count.end());
  return reshape(total, to_shape(out));
}

}  // namespace tiny::onnx
