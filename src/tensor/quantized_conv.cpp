#include "tensor/quantized_conv.h"

#include "base/error.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

// A parameter of all elements as a scalar.
Tensor as_scalar(const Tensor& parameter, const char* name) {
  require(product(parameter.shape()).is(1), Status::Shape, "quantized convolution: ", name,
          " of shape ", parameter.shape(), "; wanted one number");
  return reshape(parameter, Shape());
}

// The weight's: one number, or one for each channel with `after` axes behind.
Tensor of_channels(const Tensor& parameter, int64_t channels, int64_t after, const char* name) {
  if (product(parameter.shape()).is(1)) return reshape(parameter, Shape());
  require(parameter.shape() == to_shape({channels}), Status::Shape, "quantized convolution: ", name,
          " of shape ", parameter.shape(), "; wanted one number or [", channels, "]");
  Ints shape(static_cast<size_t>(after + 1), 1);
  shape[0] = channels;
  return reshape(parameter, to_shape(shape));
}

// Output channels, the first axis of a weight.
int64_t channels_of(const Tensor& weight) {
  require(weight.rank() >= 1, Status::Shape, "quantized convolution: a weight without axes");
  return weight.shape()[0].value();
}

}  // namespace

Tensor conv_integer(const Tensor& x, const Tensor& x_zero, const Tensor& weight,
                    const Tensor& weight_zero, const Tensor& bias, const Window& window) {
  Tensor a = cast(x, kInt32);
  if (x_zero) a = a - as_scalar(cast(x_zero, kInt32), "a zero point of the input");
  Tensor b = cast(weight, kInt32);
  if (weight_zero)
    b = b - of_channels(cast(weight_zero, kInt32), channels_of(weight), weight.rank() - 1,
                        "a zero point of the weight");
  return conv(a, b, bias, window);
}

Tensor quantized_conv(const Quantized& x, const Quantized& weight, const Tensor& bias,
                      const Tensor& y_scale, const Tensor& y_zero, const Window& window) {
  const Tensor total = conv_integer(x.values, x.zero, weight.values, weight.zero, bias, window);
  const int64_t behind = window.layout == Layout::ChannelsFirst ? total.rank() - 2 : 0;
  const Tensor factors = of_channels(cast(weight.scale, kFloat32), channels_of(weight.values),
                                     behind, "a scale of the weight");
  const Tensor scale = as_scalar(cast(x.scale, kFloat32), "a scale of the input") * factors /
                       as_scalar(cast(y_scale, kFloat32), "a scale of the result");
  return quantized(cast(total, kFloat32) * scale, as_scalar(y_zero, "a zero point of the result"),
                   y_zero.dtype());
}

}  // namespace tiny
