"""Layers by the names, arguments and parameters of tinygrad's and PyTorch's: objects whose tensors are attributes.

    model = tiny.nn.Linear(784, 10)
    optimizer = tiny.nn.optim.Adam(tiny.nn.state.get_parameters(model))
"""

import math

from .._random import glorot_uniform, kaiming_uniform, uniform
from .._creation import ones, zeros
from .._dtype import strong
from .._reading import Reading
from ..methods import Dtype
from ..native import Tensor
from . import datasets, lr_scheduler, optim, state  # noqa: F401


def _parameter(tensor):
    """It has memory from here on: losses read what steps write."""
    tensor.requires_grad = True
    return tensor.realize()


def _buffer(tensor):
    tensor.requires_grad = False
    return tensor.realize()


def _affine(shape, is_affine):
    """A weight of ones and a bias of zeros, or None and None."""
    return (_parameter(ones(shape)), _parameter(zeros(shape))) if is_affine else (None, None)


def _bounded(shape, bound):
    return _parameter(uniform(shape, low=-bound, high=bound))


class Linear:
    """x [.., in_features] times the transpose of weight [out_features, in_features], plus bias."""

    def __init__(self, in_features, out_features, bias=True) -> None:
        bound = 1 / math.sqrt(in_features) if in_features else 0
        self.weight = _bounded([out_features, in_features], bound)
        self.bias = _bounded([out_features], bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.linear(self.weight.transpose(), self.bias)


def _kernel(size, axes):
    return [size] * axes if isinstance(size, int) else list(size)


class Conv2d:
    """Cross-correlation to so many channels, over as many axes as the kernel has: two, of one number."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True) -> None:
        self.kernel_size = tuple(_kernel(kernel_size, 2))
        self.stride, self.dilation, self.groups = stride, dilation, groups
        self.padding = self._sides(padding)
        if Reading.tinygrad:  # which bounds them as if there were one group
            bound = 1 / math.sqrt(in_channels * math.prod(self.kernel_size))
            self.weight = _bounded(self._shape(in_channels, out_channels, groups), bound)
        else:
            bound = 1 / math.sqrt(in_channels // groups * math.prod(self.kernel_size))
            self.weight = _parameter(kaiming_uniform(self._shape(in_channels, out_channels, groups), a=math.sqrt(5)))
        self.bias = _bounded([out_channels], bound) if bias else None

    def _shape(self, in_channels, out_channels, groups):
        return [out_channels, in_channels // groups, *self.kernel_size]

    def _sides(self, padding):
        """As tinygrad and PyTorch have it: "same" keeps sizes where strides are 1, what is odd goes behind."""
        if not isinstance(padding, str):
            return padding
        if padding.lower() != "same":
            raise ValueError(f"Conv2d: padding {padding!r}: known are numbers and \"same\"")
        if any(step != 1 for step in _kernel(self.stride, len(self.kernel_size))):
            raise ValueError('Conv2d: padding "same" goes with strides of 1')
        spans = [by * (size - 1) for by, size in zip(_kernel(self.dilation, len(self.kernel_size)), self.kernel_size)]
        return tuple(side for span in spans[::-1] for side in (span // 2, span - span // 2))

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


def Conv1d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True) -> Conv2d:
    """Conv2d over one axis."""
    return Conv2d(in_channels, out_channels, _kernel(kernel_size, 1), stride, padding, dilation, groups, bias)


class ConvTranspose2d(Conv2d):
    """The transpose of Conv2d."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1,
                 groups=1, bias=True) -> None:
        if isinstance(padding, str):
            raise ValueError("ConvTranspose2d: padding is numbers")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.output_padding = output_padding
        if Reading.tinygrad:  # which draws it a second time, behind the bias
            bound = 1 / math.sqrt(in_channels * math.prod(self.kernel_size))
            self.weight = _bounded(self._shape(in_channels, out_channels, groups), bound)
        elif bias:  # by the elements of the weight that meet in one: those of an output channel
            bound = 1 / math.sqrt(out_channels // groups * math.prod(self.kernel_size))
            self.bias = _bounded([out_channels], bound)

    def _shape(self, in_channels, out_channels, groups):
        return [in_channels, out_channels // groups, *self.kernel_size]

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv_transpose2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding,
                                  self.output_padding)


def ConvTranspose1d(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1,
                    groups=1, bias=True) -> ConvTranspose2d:
    """ConvTranspose2d over one axis."""
    return ConvTranspose2d(in_channels, out_channels, _kernel(kernel_size, 1), stride, padding, output_padding,
                           dilation, groups, bias)


class BatchNorm:
    """(x - mean) / sqrt(variance + eps) over all axes but the second.  While Tensor.training is true the statistics are
    those of x, and running_mean and running_var go towards them by `momentum`; else these are taken."""

    def __init__(self, sz, eps=1e-5, affine=True, track_running_stats=True, momentum=0.1) -> None:
        self.eps, self.track_running_stats, self.momentum = eps, track_running_stats, momentum
        self.weight, self.bias = _affine([sz], affine)
        self.num_batches_tracked = _buffer(zeros(dtype=Dtype.INT64))
        if track_running_stats:
            self.running_mean, self.running_var = _buffer(zeros(sz)), _buffer(ones(sz))

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the variance that x is normalised by."""
        if self.track_running_stats and not Tensor.training:
            return self.running_mean, self.running_var
        axes = [axis for axis in range(x.rank) if axis != 1]
        return x.mean(axes), x.variance(axes, 0)

    def __call__(self, x: Tensor) -> Tensor:
        mean, var = self.calc_stats(x)
        if self.track_running_stats and Tensor.training:
            count = x.numel // x.shape[1]
            if count < 2:
                raise ValueError(f"BatchNorm: one element for each channel, in shape {list(x.shape)}, has no variance")
            for running, now in ((self.running_mean, mean), (self.running_var, var * (count / (count - 1)))):
                running.assign(running * (1 - self.momentum) + now.detach() * self.momentum)
            self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        return x.batch_norm(mean, var, self.weight, self.bias, self.eps)


BatchNorm2d = BatchNorm3d = BatchNorm


class GroupNorm:
    """Normalisation of each of `num_groups` parts of the channels (axis 1), with a weight and a bias per channel."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True) -> None:
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight, self.bias = _affine([num_channels], affine)

    def __call__(self, x: Tensor) -> Tensor:
        return x.group_norm(self.num_groups, self.weight, self.bias, self.eps)


class InstanceNorm:
    """Normalisation of each channel (axis 1) by itself."""

    def __init__(self, num_features, eps=1e-5, affine=True) -> None:
        self.num_features, self.eps = num_features, eps
        self.weight, self.bias = _affine([num_features], affine)

    def __call__(self, x: Tensor) -> Tensor:
        return x.instance_norm(self.weight, self.bias, self.eps)


def _last_axes(call, x, shape):
    """The first of the last axes, which have this shape."""
    if x.shape[x.rank - len(shape):] != shape:
        raise ValueError(f"{call}: the last dimensions of {list(x.shape)} are to be {list(shape)}")
    return x.rank - len(shape)


class LayerNorm:
    """Normalisation over the last axes, which have the shape `normalized_shape`."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True) -> None:
        self.normalized_shape = tuple(_kernel(normalized_shape, 1))
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight, self.bias = _affine(self.normalized_shape, elementwise_affine)

    def __call__(self, x: Tensor) -> Tensor:
        axis = _last_axes("LayerNorm", x, self.normalized_shape)
        return x.layer_norm(self.weight, self.bias, axis, self.eps)


class LayerNorm2d(LayerNorm):
    """LayerNorm over the channels of [batch, channels, height, width]."""

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm:
    """x / sqrt(mean(x * x) + eps) * weight over the last axis, of size `dim`."""

    def __init__(self, dim, eps=1e-6, elementwise_affine=True) -> None:
        self.eps, self.dim = eps, dim
        self.weight = _parameter(ones(dim)) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.rms_norm(self.weight, _last_axes("RMSNorm", x, (self.dim,)), self.eps)


class Embedding:
    """The row of weight [vocab_size, embed_size] that each index says."""

    def __init__(self, vocab_size, embed_size) -> None:
        self.vocab_sz, self.embed_sz = vocab_size, embed_size
        self.weight = _parameter(glorot_uniform(vocab_size, embed_size))

    def __call__(self, idx: Tensor) -> Tensor:
        return self.weight.gather(idx, 0)


class LSTMCell:
    """One step of an LSTM: x [batch, input_size] and the states (h, c) give new ones; zeros before the first."""

    def __init__(self, input_size, hidden_size, bias=True) -> None:
        bound = 1 / math.sqrt(hidden_size)
        self.weight_ih = _bounded([hidden_size * 4, input_size], bound)
        self.weight_hh = _bounded([hidden_size * 4, hidden_size], bound)
        self.bias_ih = _bounded([hidden_size * 4], bound) if bias else None
        self.bias_hh = _bounded([hidden_size * 4], bound) if bias else None

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        if hc is None:
            zero = x.context.full(strong(x.dtype), [x.shape[0], self.weight_hh.shape[1]], 0)
            hc = zero, zero
        gates = x.linear(self.weight_ih.T, self.bias_ih) + hc[0].linear(self.weight_hh.T, self.bias_hh)
        i, f, g, o = gates.chunk(4, dim=1)
        c = f.sigmoid() * hc[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
