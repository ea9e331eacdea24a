"""Reductions, functions of networks and losses as tinygrad and PyTorch spell them: x.max(axis=1), x.max_pool2d().

Where the package has a name already, what it does stays, and arguments tell which of the two is meant; where they
cannot (x.max(1)), the call is an error.
"""

import collections.abc
import math

from . import native
from ._creation import FLOATS
from ._disk import is_disk, written
from ._dtype import known, weakint
from ._movement import axis_of, flatten, only
from ._operands import dtype as dtype_of_name
from ._operands import want_list, want_tensors
from ._placing import context_on, is_one_place
from ._reading import NoFit, Reading, WrongArgument
from ._results import of_product, of_sum, whole_numbers
from ._together import copies
from .methods import Dtype, Reduction, dtype_size
from .native import Tensor


# ---- Reductions

def _same_type(source, made):
    return made


_RESULTS = {"sum": of_sum, "prod": of_product}


def axes_of(tensor, axes):
    """None: all.  A tensor without axes takes -1 and 0 for none."""
    if axes is None or tensor.ndim:
        return axes
    for axis in [axes] if isinstance(axes, int) else axes:
        axis_of(tensor, axis)
    return None


def _reduction(name):
    plain, result = getattr(Tensor, name), _RESULTS.get(name, _same_type)

    def reduce(self, axes=None, keepdims=None, *, axis=None, dim=None, keepdim=None, dtype=None) -> Tensor:
        along = axes_of(self, only(name, axes=axes, axis=axis, dim=dim))
        source = self if dtype is None else self.cast(dtype)
        made = plain(source, along, bool(only(name, keepdims=keepdims, keepdim=keepdim)))
        if dtype is None:
            return result(self, made)
        return made if made.dtype == dtype_of_name(dtype) else made.cast(dtype)
    reduce.__name__, reduce.__qualname__, reduce.__doc__ = name, f"Tensor.{name}", plain.__doc__
    return reduce


def _extreme(name, reduce):
    elementwise = getattr(Tensor, name)

    def extreme(self, b=None, keepdim=None, *, axis=None, dim=None, keepdims=None) -> Tensor:
        if dim is not None and not Reading.tinygrad:
            raise TypeError(f"{name}(dim={dim}) gives PyTorch's programs values and their places: write {name}(axis={dim}), "
                            f"and arg{name}(axis={dim}) for the places")
        axis, keepdim = only(name, axis=axis, dim=dim), only(name, keepdim=keepdim, keepdims=keepdims)
        if Reading.tinygrad and isinstance(b, int) and axis is None:
            b, axis = None, b
        axis = axes_of(self, axis)
        if b is None:
            return reduce(self, axis, keepdim)
        if isinstance(b, (tuple, list)) and axis is None:
            return reduce(self, axes_of(self, b), keepdim)
        if axis is not None or keepdim is not None:
            raise TypeError(f"{name}: an operand and an axis; elements are compared, or an axis is folded")
        if isinstance(b, int):
            raise TypeError(f"{name}({b}) may name an axis or a number: write {name}(axis={b}) or {name}imum({b})")
        return elementwise(self, b)
    extreme.__name__, extreme.__qualname__ = name, f"Tensor.{name}"
    extreme.__doc__ = (f"x.{name}(axis=.., keepdim=..) folds axes (all, if none is said); x.{name}(b), of a tensor or "
                       "a float, compares elements.")
    return extreme, elementwise


def _position(name):
    plain = getattr(Tensor, name)

    def position(self, axis=None, keepdims=None, last=False, *, dim=None, keepdim=None) -> Tensor:
        keep = bool(only(name, keepdims=keepdims, keepdim=keepdim))
        axis = axes_of(self, only(name, axis=axis, dim=dim))
        if axis is not None:
            return whole_numbers(plain(self, axis, keep, last))
        found = whole_numbers(plain(flatten(self), 0, False, last))
        return found.reshape([1] * self.rank) if keep else found
    position.__name__, position.__qualname__ = name, f"Tensor.{name}"
    position.__doc__ = plain.__doc__ + "  Without an axis it is that among all elements in a row."
    return position


def _options(name, said, keepdim, correction, keepdims, unbiased, ddof):
    """keepdim and correction of a call, which NumPy and PyTorch have other words for."""
    keepdim = only(name, keepdim=keepdim or None, keepdims=keepdims) or False
    correction = only(name, correction=correction, ddof=ddof, unbiased=unbiased)
    correction = 1 if correction is None else int(correction)
    if said and not Reading.tinygrad:
        raise TypeError(f"{name}: {said[0]!r} behind the axis is keepdim in tinygrad, unbiased in PyTorch and a dtype in "
                        "NumPy: write keepdim= or correction=")
    return [*said, *(keepdim, correction)[len(said):]]


def var(self, axis=None, *said, keepdim=False, correction=None, dim=None, keepdims=None, unbiased=None,
        ddof=None) -> Tensor:
    """The mean squared distance from the mean; `correction`, which is 1 if nothing is said, is taken from the count it
    divides by."""
    keepdim, correction = _options("var", said, keepdim, correction, keepdims, unbiased, ddof)
    return self.variance(only("var", axis=axis, dim=dim), correction, keepdim)


def root(variance) -> Tensor:
    """The square root whose slope at 0, of elements that are all alike, is 0."""
    same = variance.eq(0)
    return same.where(0, same.where(1, variance).sqrt())


def std(self, axis=None, *said, keepdim=False, correction=None, dim=None, keepdims=None, unbiased=None,
        ddof=None) -> Tensor:
    """The root of var()."""
    keepdim, correction = _options("std", said, keepdim, correction, keepdims, unbiased, ddof)
    return root(self.variance(only("std", axis=axis, dim=dim), correction, keepdim))


def var_mean(self, axis=None, keepdim=False, correction=1, *, dim=None) -> tuple:
    """var() and mean()."""
    axis = only("var_mean", axis=axis, dim=dim)
    return self.variance(axis, correction, keepdim), self.mean(axis, keepdim)


def std_mean(self, axis=None, keepdim=False, correction=1, *, dim=None) -> tuple:
    """std() and mean()."""
    axis = only("std_mean", axis=axis, dim=dim)
    return root(self.variance(axis, correction, keepdim)), self.mean(axis, keepdim)


# ---- Elementwise

def _same(name, doc, function):
    def method(self) -> Tensor:
        return function(self)
    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", doc
    setattr(Tensor, name, method)


def _unary_functions():
    for name, doc, function in (
            ("swish", "x * sigmoid(x).", Tensor.silu),
            ("relu6", "Kept between 0 and 6.", lambda x: (x >= 6).where(6, x.relu())),
            ("hardswish", "x * relu6(x + 3) / 6.", lambda x: x * ((x + 3).relu6() / 6)),
            ("quick_gelu", "x * sigmoid(1.702 * x).", lambda x: x * (x * 1.702).sigmoid()),
            ("mish", "x * tanh(softplus(x)).", lambda x: x * x.softplus().tanh()),
            ("softsign", "x / (1 + |x|).", lambda x: x / (x.abs() + 1)),
            ("logsigmoid", "log(sigmoid(x)).", lambda x: -(-x).softplus()),
            ("isnan", "A bool: whether it is no number.", Tensor.is_nan),
            ("logical_not", "A bool: whether it is 0.", lambda x: x == 0)):
        _same(name, doc, function)


def clip(self, low=None, high=None, *, min_=None, max_=None, min=None, max=None) -> Tensor:
    """Kept between two numbers or tensors, of which one may be left out."""
    low, high = only("clip", low=low, min_=min_, min=min), only("clip", high=high, max_=max_, max=max)
    if low is None and high is None:
        raise WrongArgument("clip: a bound at least is wanted")
    return _clip(self, low, high)


def gelu(self, approximate=None) -> Tensor:
    """x * Phi(x), by erf ("none"), or by tanh if `approximate` is true or "tanh", as tinygrad has it if nothing is
    said."""
    if approximate is None:
        approximate = Reading.tinygrad
    if isinstance(approximate, str) and approximate not in ("none", "tanh"):
        raise WrongArgument(f"gelu: approximate={approximate!r}; known: none, tanh")
    return _gelu(self, approximate not in (False, "none"))


def masked_fill(self, mask, value) -> Tensor:
    """`value` where the mask is true."""
    want_tensors("masked_fill", mask=mask)
    return mask.where(value, self)


def size(self, dim=None):
    """The shape, or the size of an axis."""
    return self.shape if dim is None else self.shape[axis_of(self, dim)]


def element_size(self) -> int:
    """Bytes of an element."""
    return dtype_size(self.dtype)


class Count(int):
    """A number that is also given when it is called: x.numel as in tiny, x.numel() as in PyTorch."""

    def __call__(self) -> int:
        return int(self)


def _numel(self) -> Count:
    """How many elements it has."""
    count = _count_of(self)
    return Count(count) if type(count) is int else count


def _nbytes(self) -> Count:
    """Bytes of all elements."""
    return Count(_count_of(self) * dtype_size(self.dtype))


def to(self, device=None, dtype=None) -> Tensor:
    """Of a dtype, cast: x.to(tiny.float16), x.to(other), of what another tensor is of.  On a device, "CPU", "CUDA:1", or
    written to "disk:PATH": itself where it is there, else a copy, computed now; no gradient goes through.  On several
    devices: a copy on each, as shard() makes them."""
    if isinstance(device, Tensor):
        return to(self, device.device, device.dtype)
    if device is not None and not isinstance(device, (tuple, list)) and known(device) is not None:
        device, dtype = None, device
    made = self if device is None else _moved(self, device)
    return made if dtype is None else _identity_of(made, dtype_of_name(dtype))


def _moved(self, device) -> Tensor:
    if is_disk(device):
        return written(self, device)
    if isinstance(device, (tuple, list)):
        return self if is_one_place(self, device) else self.shard(device)
    target = context_on(device, self.context)
    if target is self.context:
        # Gathered from several devices it is another tensor.
        return self.clone() if "_devices" in self.__dict__ else self
    moved = copies(self, [target])[0]
    if "_requires_grad" in self.__dict__:
        moved._requires_grad = self._requires_grad
    if self.grad is not None:
        moved.grad = self.grad.to(device)
    return moved


def is_floating_point(self) -> bool:
    """Whether its elements are floats."""
    return self.dtype in FLOATS


def _identity_of(self, dtype):
    return self if self.dtype == dtype else self.cast(dtype)


def _along(name):
    plain = getattr(Tensor, name)

    def normalised(self, axis=-1, dtype=None, *, dim=None) -> Tensor:
        source = self if dtype is None else self.cast(dtype)
        axis = axis if dim is None else dim
        if self.ndim:
            return plain(source, axis)
        axis_of(self, axis)
        return plain(source.reshape([1]), 0).reshape([])
    normalised.__name__, normalised.__qualname__ = name, f"Tensor.{name}"
    normalised.__doc__ = f"{plain.__doc__}  With a dtype it is computed in that."
    return normalised


def softmin(self, axis=-1, dtype=None) -> Tensor:
    """softmax(-x)."""
    return (-self).softmax(axis, dtype)


def normalize(self, p=2.0, dim=1, eps=1e-12) -> Tensor:
    """Divided by its p-norm along an axis, or by eps where that is less."""
    return self / self.norm(p, axis=dim, keepdim=True).maximum(eps)


# ---- Positions

def gather(self, index, axis=0, *, dim=None) -> Tensor:
    """x.gather(dim, index), of an axis and positions of as many axes: out[i][j] = x[i][index[i][j]] along it.
    x.gather(index, axis), of positions and an axis: whole parts, as numpy.take."""
    if isinstance(axis, Tensor) or dim is not None:
        places, along = (index, dim) if dim is not None else (axis, index)
        if places.rank != self.rank:
            raise WrongArgument(f"gather: positions of shape {list(places.shape)} for shape {list(self.shape)}: as many "
                                "axes are wanted")
        if not places.dtype.is_int:
            raise NoFit(f"gather: positions are integers, not of {places.dtype}")
        if not Reading.tinygrad:
            return self.take_along_axis(places, along)
        inside = (places >= 0) & (places < self.shape[axis_of(self, along)])
        made = inside.where(self.take_along_axis(inside.where(places, 0), along), 0)
        return _identity_of(made, self.dtype)
    return _take(self, index, axis)


def where(self, a, b) -> Tensor:
    """out[i] = condition[i] ? a[i] : b[i]; of numbers, those that are not 0 are true, but for tinygrad's reading.
    Numbers before a condition of bools are PyTorch's: x.where(condition, b) keeps x's where it is true."""
    if Reading.tinygrad and self.dtype != Dtype.BOOL:
        raise NoFit(f"where: a condition of bools is wanted, not of {self.dtype}")
    if isinstance(a, Tensor) and a.dtype == Dtype.BOOL and self.dtype != Dtype.BOOL:
        return _plain_where(a, self, b)
    return _plain_where(self, a, b)


def one_hot(self, num_classes=None, on=None, off=None, axis=-1, *, depth=None) -> Tensor:
    """A new axis with `on` at the index and `off` elsewhere; 1 and 0 of int64 if nothing else is said."""
    count = only("one_hot", num_classes=num_classes, depth=depth)
    if count is None:
        raise TypeError("one_hot: the number of classes is wanted")
    made = _one_hot(self, count, 1 if on is None else on, 0 if off is None else off, axis)
    if on is not None or off is not None:
        return made
    return made.cast(weakint) if Reading.tinygrad else whole_numbers(made)


# ---- Layers

def linear(self, weight, bias=None, dtype=None) -> Tensor:
    """x @ weight + bias; with a dtype all of it in that."""
    want_tensors("linear", weight=weight)
    if dtype is not None:
        self, weight = self.cast(dtype), weight.cast(dtype)
        bias = None if bias is None else bias.cast(dtype)
    made = self.matmul(weight) if weight.rank > 1 else self * weight
    return made if bias is None else made + bias


def sequential(self, ll) -> Tensor:
    """The functions one after the other."""
    want_list("sequential", "a list of functions", ll, collections.abc.Iterable)
    made = self
    for function in ll:
        if not callable(function):
            raise TypeError(f"sequential: {function!r} is no function")
        made = function(made)
    return made


def layernorm(self, axis=-1, eps=1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + eps) over an axis, or over the last ones that a tuple says."""
    axes = sorted(axis_of(self, one) for one in ([axis] if isinstance(axis, int) else axis))
    if axes != list(range(self.rank - len(axes), self.rank)):
        mean = self.mean(axes, True)
        return (self - mean) * (self.variance(axes, 0, True) + eps).rsqrt()
    return self.layer_norm(axis=axes[0], epsilon=eps)


def batchnorm(self, weight, bias, mean, invstd, axis=1) -> Tensor:
    """(x - mean) * invstd * weight + bias, with a number of each for the elements of the axes; None for none."""
    axes = [axis_of(self, one) for one in ([axis] if isinstance(axis, int) else axis)]
    shape = [size if i in axes else 1 for i, size in enumerate(self.shape)]
    want_tensors("batchnorm", mean=mean, invstd=invstd)
    made = (self - mean.reshape(shape))
    made = made * (weight.reshape(shape) if weight is not None else 1)
    made = made * (invstd.reshape(shape) if math.prod(invstd.shape) == math.prod(shape) else invstd)
    return made if bias is None else made + bias.reshape(shape)


def scaled_dot_product_attention(self, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
                                 enable_gqa=False) -> Tensor:
    """softmax(query @ key.T / sqrt(size)) @ value.  `attn_mask`: bools, true where a query may look, or numbers that
    are added; `dropout_p` of the weights while Tensor.training is true; `enable_gqa`: heads of key and value serve
    several of the query."""
    want_tensors("scaled_dot_product_attention", key=key, value=value)
    if is_causal and attn_mask is not None:
        raise WrongArgument("scaled_dot_product_attention: is_causal, or a mask, not both")
    if enable_gqa:
        many = self.shape[-3] // key.shape[-3]
        key, value = (part.repeat_interleave(many, dim=-3) for part in (key, value))
    scores = self.matmul(key.transpose(-2, -1)) * (1 / math.sqrt(self.shape[-1]))
    if is_causal:
        attn_mask = self.context.full(Dtype.BOOL, [self.shape[-2], key.shape[-2]], 1).tril()
    if attn_mask is not None and attn_mask.dtype == Dtype.BOOL:
        scores = attn_mask.where(scores, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return scores.softmax(-1).dropout(dropout_p).matmul(value)


# ---- Windows

def sides_of_padding(padding, axes):
    """[(before, after)] of each axis, of one number, one for each axis, or pairs in one list, the last axis first."""
    padding = [padding] * axes if isinstance(padding, int) else list(padding)
    if len(padding) == axes:
        return [(one, one) for one in padding]
    if len(padding) != 2 * axes:
        raise WrongArgument(f"padding {padding}: one number, {axes} of them, or {2 * axes} are wanted")
    return list(zip(padding[::2], padding[1::2]))[::-1]


def conv2d(self, weight, bias=None, groups=1, stride=1, dilation=1, padding=0, dtype=None) -> Tensor:
    """Cross-correlation over as many axes as the weight [out, in / groups, kernel..] has.  `padding`: a number, one for
    each axis, or pairs from the last axis on; negative ones take elements away.  With a dtype the sums are made in
    it."""
    want_tensors("conv2d", weight=weight)
    if dtype is not None:
        self, weight = self.cast(dtype), weight.cast(dtype)
        bias = None if bias is None else bias.cast(dtype)
    axes = weight.rank - 2
    return self.conv(weight, bias, groups=groups, strides=stride, dilations=dilation,
                     padding=sides_of_padding(padding, axes))


def conv_transpose2d(self, weight, bias=None, groups=1, stride=1, dilation=1, padding=0, output_padding=0) -> Tensor:
    """The transpose of conv2d, with a weight [in, out / groups, kernel..]."""
    want_tensors("conv_transpose2d", weight=weight)
    axes = weight.rank - 2
    return self.conv_transpose(weight, bias, groups=groups, strides=stride, dilations=dilation,
                               padding=sides_of_padding(padding, axes), output_padding=output_padding)


def _pool(self, kernel_size, stride, dilation, padding, ceil_mode):
    kernel = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    return {"kernel": kernel, "strides": kernel if stride is None else stride, "dilations": dilation,
            "padding": sides_of_padding(padding, len(kernel)), "ceil_mode": ceil_mode}


def max_pool2d(self, kernel_size=(2, 2), stride=None, dilation=1, padding=0, ceil_mode=False, return_indices=False):
    """The greatest value of each window over the last axes; with `return_indices` also where it is."""
    said = _pool(self, kernel_size, stride, dilation, padding, ceil_mode)
    values = self.max_pool(**said)
    return (values, whole_numbers(self.max_pool_indices(**said))) if return_indices else values


def avg_pool2d(self, kernel_size=(2, 2), stride=None, dilation=1, padding=0, ceil_mode=False,
               count_include_pad=True) -> Tensor:
    """The mean of each window over the last axes."""
    said = _pool(self, kernel_size, stride, dilation, padding, ceil_mode)
    return self.avg_pool(count_include_pad=count_include_pad, **said)


# ---- Losses

def reduction_of(reduction):
    """A member of Reduction, of its name too."""
    if not isinstance(reduction, str):
        return reduction
    if reduction.upper() not in Reduction.__members__:
        raise ValueError(f"reduction {reduction!r}; known: mean, sum, none")
    return Reduction[reduction.upper()]


def _loss(name):
    plain = getattr(Tensor, name)

    def loss(self, *arguments, reduction=None, **keywords) -> Tensor:
        arguments = list(arguments)
        if reduction is None and arguments and isinstance(arguments[-1], str):
            reduction = arguments.pop()
        said = {} if reduction is None else {"reduction": reduction_of(reduction)}
        return plain(self, *arguments, **keywords, **said)
    loss.__name__, loss.__qualname__, loss.__doc__ = name, f"Tensor.{name}", plain.__doc__
    loss.__wrapped__ = plain
    setattr(Tensor, name, loss)


def _of_elements(plain):
    """A loss of each element, which may be weighed, before they are folded."""
    def weighed(self, target, *arguments, weight=None, reduction=None, pos_weight=None, **keywords) -> Tensor:
        if pos_weight is not None:
            keywords["positive_weight"] = pos_weight
        if weight is None:
            return plain(self, target, *arguments, reduction=reduction, **keywords)
        if arguments and isinstance(arguments[-1], str):
            *arguments, reduction = arguments
        losses = plain(self, target, *arguments, reduction=Reduction.NONE, **keywords) * weight
        return {Reduction.NONE: lambda: losses, Reduction.SUM: losses.sum, Reduction.MEAN: losses.mean}[
            Reduction.MEAN if reduction is None else Reduction(reduction_of(reduction))]()
    weighed.__name__, weighed.__qualname__, weighed.__doc__ = plain.__name__, plain.__qualname__, plain.__doc__
    weighed.__wrapped__ = plain.__wrapped__
    return weighed


def cross_entropy(self, Y, *arguments, **keywords) -> Tensor:
    """Cross entropy of logits [batch, classes, ..], or [classes] of one, with targets that are classes, or probabilities
    in the logits' shape.  See tiny_cross_entropy."""
    logits = _floats(self)
    if self.ndim != 1:
        return _cross_entropy(logits, Y, *arguments, **keywords)
    want_tensors("cross_entropy", Y=Y)
    made = _cross_entropy(logits.unsqueeze(0), Y.unsqueeze(0), *arguments, **keywords)
    return made.reshape([])


def _floats(self) -> Tensor:
    """In tinygrad's reading integers, too, are logits and targets."""
    return self.float() if Reading.tinygrad and self.dtype not in FLOATS else self


def sparse_categorical_crossentropy(self, Y, ignore_index=-1, label_smoothing=0.0, reduction="mean") -> Tensor:
    """Cross entropy of logits along the last axis, with classes for targets."""
    want_tensors("sparse_categorical_crossentropy", Y=Y)
    logits = _floats(self).reshape([-1, self.shape[-1]])
    kind = reduction_of(reduction)
    # For tinygrad a class of -1 is one of those that count, whose loss is 0.
    counts_all = Reading.tinygrad and ignore_index == -1 and kind == Reduction.MEAN
    made = logits.cross_entropy(flatten(Y), ignore_index=ignore_index, label_smoothing=label_smoothing,
                                reduction=Reduction.NONE if counts_all else kind)
    if counts_all:
        return made.mean()
    return made.reshape(Y.shape) if kind == Reduction.NONE else made


def binary_crossentropy(self, Y, reduction="mean") -> Tensor:
    """Of probabilities."""
    return self.binary_cross_entropy(_floats(Y), reduction=reduction)


def binary_crossentropy_logits(self, Y, reduction="mean", pos_weight=None) -> Tensor:
    """Of what a sigmoid makes probabilities of."""
    return _floats(self).binary_cross_entropy_with_logits(_floats(Y), pos_weight, reduction=reduction)


_clip, _gelu, _take, _one_hot, _plain_where = Tensor.clip, Tensor.gelu, Tensor.gather, Tensor.one_hot, Tensor.where
for _name in ("sum", "prod", "mean", "any", "all", "logsumexp"):
    setattr(Tensor, _name, _reduction(_name))
for _name in ("softmax", "log_softmax"):
    setattr(Tensor, _name, _along(_name))
Tensor.max, Tensor.maximum = _extreme("max", Tensor.reduce_max)
Tensor.min, Tensor.minimum = _extreme("min", Tensor.reduce_min)
for _name in ("argmax", "argmin"):
    setattr(Tensor, _name, _position(_name))
for _name in ("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
              "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "ctc_loss"):
    _loss(_name)
for _name in ("binary_cross_entropy", "binary_cross_entropy_with_logits"):
    setattr(Tensor, _name, _of_elements(getattr(Tensor, _name)))
_cross_entropy = Tensor.cross_entropy
_unary_functions()
for _function in (cross_entropy, var, std, var_mean, std_mean, clip, gelu, gather, where, one_hot, linear, sequential, layernorm,
                  batchnorm, masked_fill, size, element_size, to, scaled_dot_product_attention, conv2d,
                  softmin, normalize, conv_transpose2d, max_pool2d, avg_pool2d, sparse_categorical_crossentropy, binary_crossentropy,
                  binary_crossentropy_logits):
    setattr(Tensor, _function.__name__, _function)
Tensor.clamp = clip
_count_of = Tensor.numel.fget
Tensor.numel, Tensor.nbytes = property(_numel), property(_nbytes)
Tensor.dot = Tensor.matmul
for _name, _dtype in (("float", Dtype.FLOAT32), ("half", Dtype.FLOAT16), ("int", Dtype.INT32), ("long", Dtype.INT64),
                      ("short", Dtype.INT16), ("double", Dtype.FLOAT64), ("bool", Dtype.BOOL)):
    _same(_name, f"Cast to {_dtype.name.lower()}.", lambda self, dtype=_dtype: _identity_of(self, dtype))
_same("bfloat16", "Cast to bfloat16.", lambda self: _identity_of(self, Dtype.BFLOAT16))
Tensor.is_floating_point = is_floating_point
