#include "tensor/normalization.h"

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/window.h"

namespace tiny {

namespace {

DType result_dtype(const Tensor& x) {
  return float_dtype(x);
}

Tensor wide(const Tensor& x) {
  return cast(x, accumulator_dtype(result_dtype(x)));
}

Tensor mean_of(const Tensor& x, const Ints& axes) {
  return mean(x, axes, true);
}

struct Moments {
  Tensor mean, variance;  // of the population; the axes have size 1
};
Moments moments(const Tensor& x, const Ints& axes) {
  const Tensor centre = mean_of(x, axes);
  return {centre, mean_of(square(sub(x, centre)), axes)};
}

// 1 / sqrt(power + epsilon).
Tensor inverse_root(const Tensor& power, double epsilon) {
  return rsqrt(add(power, number(power, epsilon)));
}

// (x - mean) / sqrt(variance + epsilon) over `axes`.
Tensor normalized(const Tensor& x, const Ints& axes, double epsilon) {
  const Moments m = moments(x, axes);
  return mul(sub(x, m.mean), inverse_root(m.variance, epsilon));
}

Tensor scaled(const Tensor& x, const Tensor& scale, const Tensor& bias) {
  Tensor out = x;
  if (scale) out = mul(out, cast(scale, x.dtype()));
  if (bias) out = add(out, cast(bias, x.dtype()));
  return out;
}

// One number per channel (axis 1), as a shape that broadcasts with x; no tensor stays none.
Tensor per_channel(const Tensor& x, const Tensor& values, const char* what) {
  if (!values) return values;
  require(x.rank() >= 2 && values.rank() == 1 && decide_equal(values.shape()[0], x.shape()[1]),
          Status::Shape, what, ": ", values.shape(), " for the channels of ", x.shape(),
          "; wanted one axis, of as many as axis 1 has");
  Shape shape(x.shape().size(), Dim(1));
  shape[1] = x.shape()[1];
  return reshape(values, shape);
}

Ints axes_from(const Tensor& x, int64_t axis) {
  Ints axes;
  for (int64_t i = checked_axis(axis, x.rank()); i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

void require_contexts(const Tensor& x, std::initializer_list<Tensor> others) {
  std::vector<const Tensor*> all{&x};
  for (const Tensor& t : others)
    if (t) all.push_back(&t);
  require_one_context(all);
}

}  // namespace

Tensor variance(const Tensor& a, const Ints& axes, double correction, bool keepdims) {
  const Tensor x = wide(a);
  const Tensor total = reduce_as_is(square(sub(x, mean_of(x, axes))), Op::Add, axes, keepdims);
  const Tensor count = cast(size_tensor(a.context_ref(), reduced_count(a, axes)), total.dtype());
  // Fewer values than the correction leave nothing to divide by: NaN or infinity, as NumPy has it.
  const Tensor divisor = maximum(sub(count, number(count, correction)), number(count, 0));
  return cast(div(total, divisor), result_dtype(a));
}

Tensor lp_norm(const Tensor& a, double p, const Ints& axes, bool keepdims) {
  const Tensor size = abs(a);
  if (p == 1) return sum(size, axes, keepdims);
  if (p == 2) return sqrt(sum(square(size), axes, keepdims));
  const Tensor total = sum(pow(size, number(size, p)), axes, keepdims);
  return pow(total, number(total, 1 / p));
}

Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean,
                  const Tensor& var, double epsilon) {
  require_contexts(x, {scale, bias, mean, var});
  require(mean && var, Status::InvalidArgument, "batch_norm: no mean or variance");
  const Tensor value = wide(x);
  const DType dtype = value.dtype();
  const Tensor deviation = rsqrt(add(cast(per_channel(x, var, "batch_norm: var"), dtype),
                                     cast(number(value, epsilon), dtype)));
  const Tensor centred = sub(value, cast(per_channel(x, mean, "batch_norm: mean"), dtype));
  const Tensor gain =
      scale ? mul(deviation, cast(per_channel(x, scale, "batch_norm: scale"), dtype)) : deviation;
  return cast(scaled(mul(centred, gain), Tensor(), per_channel(x, bias, "batch_norm: bias")),
              result_dtype(x));
}

Tensor batch_norm_folded(const Tensor& x, const Tensor& scale, const Tensor& bias,
                         const Tensor& mean, const Tensor& var, double epsilon) {
  require_contexts(x, {scale, bias, mean, var});
  require(scale && bias && mean && var, Status::InvalidArgument,
          "batch_norm: no scale, bias, mean or variance");
  const Tensor deviation = wide(var);
  const Tensor factor = div(wide(scale), sqrt(add(deviation, number(deviation, epsilon))));
  const Tensor rest = sub(wide(bias), mul(wide(mean), factor));
  return cast(add(mul(wide(x), per_channel(x, factor, "batch_norm: scale")),
                  per_channel(x, rest, "batch_norm: bias")),
              result_dtype(x));
}

TrainedBatchNorm batch_norm_of_itself(const Tensor& x, const Tensor& scale, const Tensor& bias,
                                      double epsilon) {
  require_contexts(x, {scale, bias});
  require(x.rank() >= 2, Status::Shape, "batch_norm of shape ", x.shape(),
          "; wanted at least 2 axes");
  Ints axes = every_axis(x.rank());
  axes.erase(axes.begin() + 1);
  const Moments m = moments(wide(x), axes);
  const Tensor mean = reshape(m.mean, {x.shape()[1]});
  const Tensor var = reshape(m.variance, {x.shape()[1]});
  return {batch_norm(x, scale, bias, mean, var, epsilon), mean, var};
}

RunningBatchNorm batch_norm_training(const Tensor& x, const Tensor& scale, const Tensor& bias,
                                     const Tensor& running_mean, const Tensor& running_var,
                                     double epsilon, double momentum) {
  require_contexts(x, {running_mean, running_var});
  require(running_mean && running_var, Status::InvalidArgument,
          "batch_norm: no running mean or variance");
  const TrainedBatchNorm now = batch_norm_of_itself(x, scale, bias, epsilon);
  const auto running = [&](const Tensor& stored, const Tensor& fresh) {
    const Tensor value = wide(stored);
    return cast(add(mul(value, number(value, momentum)), mul(fresh, number(fresh, 1 - momentum))),
                stored.dtype());
  };
  return {now.y, running(running_mean, now.mean), running(running_var, now.var)};
}

Tensor batch_norm_elementwise(const Tensor& x, const Tensor& scale, const Tensor& bias,
                              const Tensor& mean, const Tensor& var, double epsilon) {
  return add(mul(mul(sub(x, mean), inverse_root(var, epsilon)), scale), bias);
}

Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, int64_t axis,
                  double epsilon) {
  require_contexts(x, {scale, bias});
  return cast(scaled(normalized(wide(x), axes_from(x, axis), epsilon), scale, bias),
              result_dtype(x));
}

StagedLayerNorm layer_norm_staged(const Tensor& x, const Tensor& scale, const Tensor& bias,
                                  int64_t axis, double epsilon, DType stage) {
  require_contexts(x, {scale, bias});
  const Tensor value = cast(x, stage);
  const Moments m = moments(value, axes_from(x, axis));
  const Tensor inverse = inverse_root(m.variance, epsilon);
  Tensor y = cast(mul(sub(value, m.mean), inverse), x.dtype());
  if (scale) y = mul(y, scale);
  if (bias) y = add(y, bias);
  return {y, m.mean, inverse};
}

Tensor rms_norm(const Tensor& x, const Tensor& scale, int64_t axis, double epsilon) {
  require_contexts(x, {scale});
  const Tensor value = wide(x);
  const Tensor power = mean_of(square(value), axes_from(x, axis));
  return cast(scaled(mul(value, inverse_root(power, epsilon)), scale, Tensor()), result_dtype(x));
}

Tensor rms_norm_staged(const Tensor& x, const Tensor& scale, int64_t axis, double epsilon,
                       DType stage) {
  require_contexts(x, {scale});
  const Tensor value = cast(x, stage);
  const Tensor power = mean_of(square(value), axes_from(x, axis));
  const Tensor y = cast(mul(value, inverse_root(power, epsilon)), x.dtype());
  return scale ? mul(y, scale) : y;
}

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& bias,
                  double epsilon) {
  require_contexts(x, {scale, bias});
  require(x.rank() >= 2, Status::Shape, "group_norm of shape ", x.shape(),
          "; wanted at least 2 axes");
  const Dim channels = x.shape()[1];
  require(groups >= 1 && (divide_exactly(channels, groups) || channels.value() % groups == 0),
          Status::Shape, "group_norm: ", channels, " channels in ", groups,
          " groups; wanted a multiple of the groups, which are at least 1");
  // The channels of a group and their places are one axis.
  const Dim size = floor_div(channels, Dim(groups)) * product(x.shape().from(2));
  const Shape split{x.shape()[0], Dim(groups), size};
  const Tensor value = wide(x);
  const Tensor grouped = value.with(make_reshape(value.node(), split));
  const Tensor normal = normalized(grouped, {2}, epsilon);
  const Tensor flat = value.with(make_reshape(normal.node(), x.shape()));
  return cast(scaled(flat, per_channel(x, scale, "group_norm: scale"),
                     per_channel(x, bias, "group_norm: bias")),
              result_dtype(x));
}

Tensor instance_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, double epsilon) {
  require_contexts(x, {scale, bias});
  require(x.rank() >= 3, Status::Shape, "instance_norm of shape ", x.shape(),
          "; wanted at least 3 axes");
  return cast(scaled(normalized(wide(x), axes_from(x, 2), epsilon),
                     per_channel(x, scale, "instance_norm: scale"),
                     per_channel(x, bias, "instance_norm: bias")),
              result_dtype(x));
}

Tensor mean_variance_norm(const Tensor& x, const Ints& axes, double epsilon) {
  const Moments m = moments(x, axes);
  return div(sub(x, m.mean), add(sqrt(m.variance), number(x, epsilon)));
}

Tensor lp_normalize(const Tensor& x, int64_t p, int64_t axis) {
  require(p == 1 || p == 2, Status::InvalidArgument, "lp_normalize: p = ", p, "; it takes 1 or 2");
  const Tensor norm = p == 1 ? sum(abs(x), {axis}, true) : sqrt(sum(square(x), {axis}, true));
  return where(equal(norm, number(norm, 0)), number(x, 0), div(x, norm));
}

namespace {

// Quarters of powers are roots of a positive base: a general power of float32 is made in float64.
Tensor power_of_base(const Tensor& base, double exponent) {
  if (exponent == 0.5) return sqrt(base);
  if (exponent != 0.25 && exponent != 0.75) return pow(base, number(base, exponent));
  const Tensor root = sqrt(base);
  const Tensor fourth = sqrt(root);
  return exponent == 0.25 ? fourth : mul(root, fourth);
}

}  // namespace

Tensor lrn(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  require(x.rank() >= 2, Status::Shape, "lrn of shape ", x.shape(), "; wanted at least 2 axes");
  require(size >= 1, Status::InvalidArgument, "lrn: size is ", size, "; wanted at least 1");
  const Tensor value = wide(x);
  // Channels last, so that windows over them are windows over the last axis.
  const Tensor turned = transpose(square(value), 1, -1);
  Shape before(turned.shape().size(), Dim(0));
  Shape after = before;
  before.back() = (size - 1) / 2;
  after.back() = size - 1 - (size - 1) / 2;
  const Tensor padded = pad(turned, before, after);
  const Tensor view = windows(padded, {size}, {1}, {1}, {x.shape()[1].value()});
  const Tensor total = transpose(reduce_as_is(view, Op::Add, {-1}, false), 1, -1);
  const Tensor base =
      add(mul(total, number(total, alpha / static_cast<double>(size))), number(total, k));
  return cast(div(value, power_of_base(base, beta)), result_dtype(x));
}

}  // namespace tiny
