#include "nn/layers.h"

#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/random.h"
#include "tensor/reduce.h"
#include "tensor/value.h"

namespace tiny {

namespace {

constexpr Initialization kZeros{Initial::Constant, 0};
constexpr Initialization kOnes{Initial::Constant, 1};

std::string under(std::string_view name, std::string_view what) {
  return std::string(name) + '.' + std::string(what);
}

int64_t known_size(const Tensor& x, int64_t axis, std::string_view name, const char* what) {
  const int64_t at = checked_axis(axis, x.rank());
  const Dim size = x.shape()[static_cast<size_t>(at)];
  require(size.is_const(), Status::Unsupported, "\"", name, "\": ", what, " number ", size,
          ", which runs decide; wanted a number");
  return size.value();
}

void require_rank(const Tensor& x, int64_t least, std::string_view name) {
  require(x.rank() >= least, Status::Shape, "\"", name, "\": x has the shape ", x.shape(),
          "; wanted at least ", least, " axes");
}

// Weight and bias both within 1 / sqrt(inputs of an output) (torch.nn.Linear, torch.nn.Conv2d).
struct Weighted {
  Tensor weight, bias;
};
Weighted weighted(Module& module, std::string_view name, const Ints& shape, int64_t outputs,
                  bool has_bias) {
  const int64_t inputs =
      std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
  const double limit = inputs > 0 ? 1 / std::sqrt(static_cast<double>(inputs)) : 0;
  const Initialization how{Initial::Uniform, -limit, limit};
  Weighted out{module.parameter(under(name, "weight"), shape, how), Tensor()};
  if (has_bias) out.bias = module.parameter(under(name, "bias"), {outputs}, how);
  return out;
}

// The weight's shape: `first`, `second` and the kernel, in the window's order.
Ints weight_shape(const Tensor& x, const Window& window, int64_t first, int64_t second,
                  std::string_view name) {
  require(!window.kernel.empty(), Status::InvalidArgument, "\"", name,
          "\": the window has no kernel's sizes");
  require(x.rank() == static_cast<int64_t>(window.kernel.size()) + 2, Status::Shape, "\"", name,
          "\": x has the shape ", x.shape(), "; wanted batch, channels and ", window.kernel.size(),
          " spatial axes");
  Ints shape{first};
  const bool is_last = window.layout == Layout::ChannelsLast;
  if (!is_last) shape.push_back(second);
  shape.insert(shape.end(), window.kernel.begin(), window.kernel.end());
  if (is_last) shape.push_back(second);
  return shape;
}

int64_t channel_axis(const Window& window) {
  return window.layout == Layout::ChannelsLast ? -1 : 1;
}

int64_t parts(int64_t count, int64_t groups, std::string_view name) {
  require(groups > 0 && count % groups == 0, Status::InvalidArgument, "\"", name, "\": ", count,
          " channels in ", groups, " groups");
  return count / groups;
}

struct Affine {
  Tensor weight, bias;
};
Affine affine(Module& module, std::string_view name, const Ints& shape, const NormOptions& options,
              bool has_bias = true) {
  if (!options.is_affine) return {};
  Affine out{module.parameter(under(name, "weight"), shape, kOnes), Tensor()};
  if (has_bias) out.bias = module.parameter(under(name, "bias"), shape, kZeros);
  return out;
}

Ints sizes_from(const Tensor& x, int64_t axis, std::string_view name) {
  Ints sizes;
  for (int64_t i = checked_axis(axis, x.rank()); i < x.rank(); ++i)
    sizes.push_back(known_size(x, i, name, "elements"));
  return sizes;
}

}  // namespace

Tensor linear(Module& module, std::string_view name, const Tensor& x, int64_t features,
              bool has_bias) {
  require_rank(x, 1, name);
  const int64_t inputs = known_size(x, -1, name, "inputs");
  const Weighted w = weighted(module, name, {features, inputs}, features, has_bias);
  const Tensor product = matmul(x, transpose(w.weight, 0, 1));
  return has_bias ? product + w.bias : product;
}

Tensor conv(Module& module, std::string_view name, const Tensor& x, int64_t channels,
            const Window& window, bool has_bias) {
  require_rank(x, 3, name);
  const int64_t inputs = known_size(x, channel_axis(window), name, "channels");
  const Ints shape = weight_shape(x, window, channels, parts(inputs, window.groups, name), name);
  const Weighted w = weighted(module, name, shape, channels, has_bias);
  return conv(x, w.weight, w.bias, window);
}

Tensor conv_transpose(Module& module, std::string_view name, const Tensor& x, int64_t channels,
                      const Window& window, bool has_bias) {
  require_rank(x, 3, name);
  const int64_t inputs = known_size(x, channel_axis(window), name, "channels");
  const Ints shape = weight_shape(x, window, inputs, parts(channels, window.groups, name), name);
  const Weighted w = weighted(module, name, shape, channels, has_bias);
  return conv_transpose(x, w.weight, w.bias, window);
}

Tensor embedding(Module& module, std::string_view name, const Tensor& index, int64_t count,
                 int64_t size) {
  const Tensor weight =
      module.parameter(under(name, "weight"), {count, size}, {Initial::Normal, 0, 1});
  return gather(weight, index, 0);
}

Tensor batch_norm(Module& module, std::string_view name, const Tensor& x,
                  const NormOptions& options, double momentum) {
  require_rank(x, 2, name);
  const int64_t channels = known_size(x, 1, name, "channels");
  const Affine by = affine(module, name, {channels}, options);
  const DType dtype = module.dtype();
  Tensor& mean = module.buffer(under(name, "running_mean"), {channels}, dtype, 0);
  Tensor& var = module.buffer(under(name, "running_var"), {channels}, dtype, 1);
  Tensor& batches = module.buffer(under(name, "num_batches_tracked"), {}, kInt64, 0);
  if (!module.is_training() && by.weight && by.bias)  // one product and one sum, as models have it
    return batch_norm_folded(x, by.weight, by.bias, mean, var, options.epsilon);
  if (!module.is_training()) return batch_norm(x, by.weight, by.bias, mean, var, options.epsilon);
  Ints axes = every_axis(x.rank());
  axes.erase(axes.begin() + 1);
  const Dim count = reduced_count(x, axes);
  require(!count.is(1), Status::Shape, "\"", name, "\": x of shape ", x.shape(),
          " has one value for each channel; wanted more where it trains");
  const TrainedBatchNorm now = batch_norm_of_itself(x, by.weight, by.bias, options.epsilon);
  // Of a sample, as a better guess of the whole's.
  const Tensor values = cast(size_tensor(x.context_ref(), count), now.var.dtype());
  const Tensor of_sample = now.var * (values / (values - number(values, 1)));
  const auto move = [&](Tensor& running, const Tensor& fresh) {
    const Tensor last = cast(running, fresh.dtype());
    const Tensor next = last + (fresh - last) * number(last, momentum);
    assign_along(running, cast(next, running.dtype()), now.mean);
  };
  move(mean, now.mean);
  move(var, of_sample);
  assign_along(batches, batches + number_int(batches, 1), now.mean);
  return now.y;
}

Tensor layer_norm(Module& module, std::string_view name, const Tensor& x, int64_t axis,
                  const NormOptions& options) {
  const Affine by = affine(module, name, sizes_from(x, axis, name), options);
  return layer_norm(x, by.weight, by.bias, axis, options.epsilon);
}

Tensor rms_norm(Module& module, std::string_view name, const Tensor& x, int64_t axis,
                const NormOptions& options) {
  const Affine by = affine(module, name, sizes_from(x, axis, name), options, false);
  return rms_norm(x, by.weight, axis, options.epsilon);
}

Tensor group_norm(Module& module, std::string_view name, const Tensor& x, int64_t groups,
                  const NormOptions& options) {
  require_rank(x, 2, name);
  const Affine by = affine(module, name, {known_size(x, 1, name, "channels")}, options);
  return group_norm(x, groups, by.weight, by.bias, options.epsilon);
}

Tensor instance_norm(Module& module, std::string_view name, const Tensor& x,
                     const NormOptions& options) {
  require_rank(x, 3, name);
  const Affine by = affine(module, name, {known_size(x, 1, name, "channels")}, options);
  return instance_norm(x, by.weight, by.bias, options.epsilon);
}

Tensor dropout(const Module& module, const Tensor& x, double p) {
  require(p >= 0 && p <= 1, Status::InvalidArgument, "dropout with the probability ", p,
          "; wanted 0 to 1");
  require(x.dtype().is_float(), Status::DType, "dropout of ", x.dtype(), "; wanted floats");
  if (!module.is_training() || p == 0) return x;
  return dropout(module.generator().next(), x, p);
}

}  // namespace tiny
