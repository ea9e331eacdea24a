"""Operators that have neither a row in src nor a decomposition of PyTorch's: made of others here."""

import math

import torch
from torch._decomp import decomposition_table


# ---- Distances of rows -------------------------------------------------------------------------------------------------------


def _apart(x1, x2):
    return x1.unsqueeze(-2) - x2.unsqueeze(-3)


def cdist_forward(x1, x2, p, compute_mode=None):
    apart = _apart(x1, x2).abs()
    if apart.numel() == 0:
        return apart.sum(-1)
    if p == 0:
        return (apart != 0).sum(-1).to(apart.dtype)
    if p == 1:
        return apart.sum(-1)
    if p == 2:
        return apart.square().sum(-1).sqrt()
    if p == math.inf:
        return apart.amax(-1)
    return apart.pow(p).sum(-1).pow(1 / p)


def cdist_backward(grad, x1, x2, p, cdist):
    apart, distance = _apart(x1, x2), cdist.unsqueeze(-1)
    if p == 0 or apart.numel() == 0:
        return torch.zeros_like(x1)
    if p == 1:
        slope = apart.sign()
    elif p == math.inf:
        slope = apart.sign() * (apart.abs() == distance)
    else:  # of the p-th root of the sum of |a|^p; none where nothing is apart
        share = torch.where((distance == 0) | (apart == 0), 1, apart.abs() / distance)
        slope = apart.sign() * share.pow(p - 1)
    return (grad.unsqueeze(-1) * slope).sum(-2).sum_to_size(x1.shape)


def _upper(x, device):
    return torch.triu_indices(x.shape[0], x.shape[0], 1, device=device).unbind(0)


def pdist_forward(self, p=2.0):
    return cdist_forward(self, self, p)[_upper(self, self.device)]


def pdist_backward(grad, self, p, pdist):
    rows, columns = _upper(self, self.device)
    square = grad.new_zeros(2, self.shape[0], self.shape[0])
    for values, given in zip(square, (grad, pdist)):
        values[rows, columns] = given
        values[columns, rows] = given
    return cdist_backward(square[0], self, self, p, square[1])


# ---- Greatest elements of windows that are not all of one length -------------------------------------------------------------


def _windows(length, count, device):
    """The places that each window reads, [count, the longest]: the last one again where it is shorter."""
    number = torch.arange(count, device=device)
    begin, end = number * length // count, ((number + 1) * length + count - 1) // count
    longest = max(((i + 1) * length + count - 1) // count - i * length // count for i in range(count)) if count else 1
    return torch.minimum(begin.unsqueeze(1) + torch.arange(longest, device=device), end.unsqueeze(1) - 1)


def adaptive_max_pool(self, output_size, out, indices):
    axes = len(output_size)
    torch._check(self.dim() in (axes + 1, axes + 2) and 0 not in self.shape[-axes - 1:],
                 lambda: f"adaptive_max_pool{axes}d(): expected non-batch dimensions that are not empty, got {list(self.shape)}")
    lengths = self.shape[-axes:]
    values, places = self.reshape(-1, *lengths), torch.zeros((), dtype=torch.int64, device=self.device)
    for axis, (length, count) in enumerate(zip(lengths, output_size)):
        read = _windows(length, count, self.device)
        # Behind the axes that were cut before, each of which is two now.
        values = values.index_select(1 + 2 * axis, read.reshape(-1)).unflatten(1 + 2 * axis, read.shape)
        places = places[..., None, None] * length + read
    order = [*range(1, 2 * axes, 2), *range(2, 2 * axes + 1, 2)]
    values = values.permute(0, *order).flatten(1 + axes)
    places = places.permute(*(axis - 1 for axis in order)).flatten(axes).expand(values.shape)
    most, chosen = values.max(-1, keepdim=True)
    out.copy_(most.view(out.shape))
    indices.copy_(places.gather(-1, chosen).view(indices.shape))
    return out, indices


def adaptive_max_pool_backward(axes):
    def backward(grad_output, self, indices, grad_input):
        flat = self.new_zeros(self.shape[:-axes].numel(), self.shape[-axes:].numel())
        flat = flat.scatter_add(1, indices.reshape(len(flat), -1), grad_output.reshape(len(flat), -1))
        return grad_input.copy_(flat.view(self.shape))
    return backward


# ---- Numbers of quantized networks, while they are trained -------------------------------------------------------------------


def _rounded(self, scale, zero_point, quant_min, quant_max):
    steps = (self.float() * (1 / scale)).round() + zero_point
    made = (steps.clamp(quant_min, quant_max) - zero_point) * scale
    return made.to(self.dtype), (steps >= quant_min) & (steps <= quant_max)


def fake_quantize_by_tensors(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
    made, mask = _rounded(self, scale, zero_point, quant_min, quant_max)
    is_on = fake_quant_enabled != 0
    return torch.where(is_on, made, self), mask | ~is_on


def fake_quantize_per_channel(self, scale, zero_point, axis, quant_min, quant_max):
    shape = [-1 if i == axis % self.dim() else 1 for i in range(self.dim())]
    return _rounded(self, scale.view(shape), zero_point.view(shape), quant_min, quant_max)


# ---- Parts of numbers --------------------------------------------------------------------------------------------------------

# The bits of an exponent's lowest place, the exponent of numbers from a half to one as it is stored, and what makes normal
# numbers of those that are not, a power of two.
EXPONENTS = {torch.float32: (torch.int32, 23, 126, 25), torch.float64: (torch.int64, 52, 1022, 54)}


def frexp(self, mantissa, exponent):
    torch._check(self.is_floating_point(), lambda: "torch.frexp() only supports floating-point dtypes")
    given = self if self.dtype == torch.float64 else self.float()
    bits, place, half, raised = EXPONENTS[given.dtype]
    is_small = given.abs() < torch.finfo(given.dtype).tiny
    pattern = torch.where(is_small, given * 2.0**raised, given).view(bits)
    field = ((2 * half + 3) << place)  # where the exponent is
    power = ((pattern & field) >> place) - half - torch.where(is_small, raised, 0)
    made = ((pattern & ~field) | (half << place)).view(given.dtype)
    is_as_it_is = (given == 0) | ~given.isfinite()
    for output, one in (mantissa, torch.where(is_as_it_is, given, made)), (exponent, torch.where(is_as_it_is, 0, power)):
        if output.shape != self.shape:
            output.resize_(self.shape)
        output.copy_(one)
    return mantissa, exponent


# ---- Others ------------------------------------------------------------------------------------------------------------------


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, pin_memory=None):
    dtype = dtype or torch.get_default_dtype()
    torch._check(window_length >= 0, lambda: f"kaiser_window requires non-negative window_length, got window_length={window_length}")
    if window_length < 2:
        return torch.ones(window_length, dtype=dtype, device=device)
    place = torch.arange(window_length, dtype=torch.float64, device=device) * (2 / (window_length - (not periodic))) - 1
    return (torch.i0(beta * (1 - place.square()).clamp(min=0).sqrt()) / torch.i0(place.new_tensor(beta))).to(dtype)


def rrelu_with_noise(self, noise, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    if not training:
        return torch.nn.functional.leaky_relu(self, (lower + upper) / 2)
    drawn = torch.empty_like(self).uniform_(lower, upper, generator=generator)
    noise.copy_(torch.where(self <= 0, drawn, 1))
    return self * noise


def rrelu_with_noise_out(self, noise, lower=1 / 8, upper=1 / 3, training=False, generator=None, *, out):
    made = rrelu_with_noise(self, noise, lower, upper, training, generator)
    return (out if out.shape == made.shape else out.resize_(made.shape)).copy_(made)


def rrelu_with_noise_(self, noise, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    return self.copy_(rrelu_with_noise(self, noise, lower, upper, training, generator))


def assert_now(self, message="Expected Tensor with single nonzero value, but got zero"):
    """Somebody looks: here and now."""
    if not self:
        raise RuntimeError(message)


def int_mm(self, other):
    torch._check(self.dim() == 2 and other.dim() == 2 and self.shape[1] == other.shape[0],
                 lambda: f"_int_mm: expected matrices of bytes that fit, got {list(self.shape)} and {list(other.shape)}")
    torch._check(self.dtype in (torch.int8, torch.uint8) and other.dtype == torch.int8,
                 lambda: f"_int_mm: expected int8 (or uint8 on the left), got {self.dtype} and {other.dtype}")
    return self.int() @ other.int()


def int_mm_out(self, other, *, out):
    made = int_mm(self, other)
    return (out if out.shape == made.shape else out.resize_(made.shape)).copy_(made)


def multi_margin_loss_backward(grad_output, self, target, p, margin, weight=None, reduction=1):
    rows, place = torch.atleast_2d(self), target.reshape(-1, 1)
    beyond = (margin - rows.gather(1, place) + rows).clamp(min=0)
    slope = (beyond > 0).to(rows.dtype) if p == 1 else 2 * beyond
    if weight is not None:
        slope = slope * weight[place]
    slope = slope.scatter(1, place, 0) / rows.shape[1]
    slope = slope.scatter(1, place, -slope.sum(1, keepdim=True))
    if reduction == 1:
        slope = slope / rows.shape[0]
    return (slope * grad_output.reshape(-1, 1)).view(self.shape)


def nll_loss2d_forward(self, target, weight, reduction, ignore_index):
    torch.ops.tiny.check_classes(target, self.shape[1], ignore_index)
    return decomposition_table[torch.ops.aten.nll_loss2d_forward.default](self, target, weight, reduction, ignore_index)


def register(library):
    for name, function in {
        "_cdist_forward": cdist_forward,
        "_cdist_backward": cdist_backward,
        "_pdist_forward": pdist_forward,
        "_pdist_backward": pdist_backward,
        "adaptive_max_pool2d.out": adaptive_max_pool,
        "adaptive_max_pool3d.out": adaptive_max_pool,
        "adaptive_max_pool2d_backward.grad_input": adaptive_max_pool_backward(2),
        "adaptive_max_pool3d_backward.grad_input": adaptive_max_pool_backward(3),
        "fake_quantize_per_tensor_affine_cachemask": _rounded,
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": fake_quantize_by_tensors,
        "fake_quantize_per_channel_affine_cachemask": fake_quantize_per_channel,
        "frexp.Tensor_out": frexp,
        "multi_margin_loss_backward": multi_margin_loss_backward,
        "nll_loss2d_forward": nll_loss2d_forward,
        "kaiser_window": kaiser_window,
        "kaiser_window.periodic": kaiser_window,
        "kaiser_window.beta": kaiser_window,
        "rrelu_with_noise": rrelu_with_noise,
        "rrelu_with_noise.out": rrelu_with_noise_out,
        "rrelu_with_noise_": rrelu_with_noise_,
        "_assert_async": assert_now,
        "_assert_async.msg": assert_now,
        "_int_mm": int_mm,
        "_int_mm.out": int_mm_out,
        "_weight_norm_interface_backward": torch.ops.aten._weight_norm_differentiable_backward.default,
    }.items():
        library.impl(name, function, "PrivateUse1")
