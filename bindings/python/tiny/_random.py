"""Random tensors by the class: Tensor.rand(2, 3), x.dropout(0.5), after Tensor.manual_seed(1).

They are tinygrad's numbers of the same seed and order of draws: see _random_source.py.
"""

import math

from . import _tape, native
from ._creation import FLOATS, finish, spread
from ._dtype import default_float
from ._dimension import is_dimension
from ._operands import dtype as dtype_of_name
from ._operands import want_numbers
from ._random_source import Source
from ._reading import Reading, WrongArgument
from ._tensor import default_context
from .methods import Dtype, stack
from .native import Tensor

def source(context) -> Source:
    """The context's random numbers."""
    if not hasattr(context, "_random_source"):
        context._random_source = Source(context)
    return context._random_source


def next_key(context, shape, dtype):
    """A key that no other draw has, for elements of this shape and dtype."""
    words = -(-math.prod(shape) * native.tiny_dtype_size(dtype) // 4)
    return source(context).next(context, words)


def manual_seed(seed=0) -> None:
    """The next random numbers are those that come after every call with this seed."""
    if _tape.State.capture is not None:
        raise _tape.JitError("manual_seed() while TinyJit captures: the program would not seed again")
    want_numbers("manual_seed", seed=seed)
    source(default_context()).seed(seed)


def _dims(call, shape):
    dims = spread(shape)
    if not all(hasattr(size, "__index__") and is_dimension(size) and size >= 0 for size in dims):
        raise ValueError(f"{call}: whole numbers from 0 on are wanted for sizes, not {dims}")
    return dims


def _floats(call, dtype):
    dtype = default_float() if dtype is None else dtype_of_name(dtype)
    if dtype not in FLOATS:
        raise ValueError(f"{call}: random numbers of {dtype!r}; floats are wanted")
    return dtype


def _uniform(context, dims, dtype):
    return next_key(context, dims, dtype).random_uniform(dtype, dims)


def _normal(context, dims, dtype):
    """Of float32 and rounded; outside of tinygrad's reading float64 has bits of its own."""
    if dtype == Dtype.FLOAT64 and Reading.tinygrad:
        return _normal(context, dims, Dtype.FLOAT32).cast(dtype)
    return next_key(context, [2, *dims], max(dtype, Dtype.FLOAT32)).random_normal(dtype, dims)


def rand(*shape, dtype=None, device=None, requires_grad=None, contiguous=True) -> Tensor:
    """Uniformly distributed, at least 0 and below 1.  `contiguous` changes nothing: where the numbers are stored, and
    whether, is the schedule's to decide."""
    drawn = _uniform(default_context(), _dims("rand", shape), _floats("rand", dtype))
    return finish(drawn, None, device, requires_grad)


def randn(*shape, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Normally distributed, of mean 0 and deviation 1; tinygrad's programs may have such floats as integers."""
    if Reading.tinygrad and dtype is not None and dtype_of_name(dtype) not in FLOATS:
        return randn(*shape, device=device, requires_grad=requires_grad).cast(dtype)
    drawn = _normal(default_context(), _dims("randn", shape), _floats("randn", dtype))
    return finish(drawn, None, device, requires_grad)


def randint(*shape, low=0, high=10, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Integers from `low` to below `high`, int64 unless `dtype` says otherwise.  All are as likely as each other; under
    tinygrad's reading they are the integers below uniform floats, int32, as there."""
    if not all(hasattr(bound, "__index__") for bound in (low, high)):
        raise TypeError(f"randint: low={low!r} and high={high!r} are to be integers")
    if low >= high:
        raise ValueError(f"randint: from {low} to below {high} there is nothing")
    natural = Dtype.INT32 if Reading.tinygrad else Dtype.INT64
    dtype = natural if dtype is None else dtype_of_name(dtype)
    if not Dtype.INT8 <= dtype < Dtype.FLOAT16:
        raise TypeError(f"randint: integers of {dtype!r}")
    context, dims = default_context(), _dims("randint", shape)
    if Reading.tinygrad:
        return finish(_spread_out(_uniform(context, dims, default_float()), low, high, dtype), None, device, requires_grad)
    wide = Dtype.INT64 if high - low > 1 << 32 else Dtype.INT32  # how many bits are drawn
    drawn = next_key(context, dims, wide).random_integers(dtype, dims, low, high)
    return finish(drawn, None, device, requires_grad)


def _spread_out(drawn, low, high, dtype):
    scaled = drawn * (high - low)
    return (scaled if scaled.dtype == dtype else scaled.cast(dtype)) + low


def uniform(*shape, low=0.0, high=1.0, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Uniformly distributed from `low` to below `high`; of an integer dtype rounded towards 0 and then added to
    `low`."""
    if low >= high:
        raise ValueError(f"uniform: from {low} to below {high} there is nothing")
    dtype = default_float() if dtype is None else dtype_of_name(dtype)
    if Reading.tinygrad:
        drawn_as = default_float()
    else:
        drawn_as = Dtype.FLOAT64 if dtype == Dtype.FLOAT64 else Dtype.FLOAT32
    drawn = _uniform(default_context(), _dims("uniform", shape), drawn_as)
    return finish(_spread_out(drawn, low, high, dtype), None, device, requires_grad)


def normal(*shape, mean=0.0, std=1.0, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Normally distributed with this mean and deviation."""
    if std < 0:
        raise ValueError(f"normal: a deviation of {std}")
    return finish(randn(*shape, dtype=dtype) * std + mean, None, device, requires_grad)


def scaled_uniform(*shape, requires_grad=None, **options) -> Tensor:
    """From -1 to 1 over the root of the number of elements."""
    dims = _dims("scaled_uniform", shape)
    drawn = uniform(dims, low=-1.0, high=1.0, **options)
    return finish(drawn * math.prod(dims) ** -0.5, None, None, requires_grad)


def glorot_uniform(*shape, **options) -> Tensor:
    """Uniformly distributed, as far as the numbers of inputs and outputs say (Glorot and Bengio 2010)."""
    dims = _dims("glorot_uniform", shape)
    bound = (6 / (dims[0] + math.prod(dims[1:]))) ** 0.5
    return uniform(dims, low=-bound, high=bound, **options)


def kaiming_uniform(*shape, a=0.01, **options) -> Tensor:
    """Uniformly distributed by the number of inputs, for rectifiers of slope `a` below 0 (He et al. 2015)."""
    dims = _dims("kaiming_uniform", shape)
    bound = (6 / (1 + a ** 2) / math.prod(dims[1:])) ** 0.5
    return uniform(dims, low=-bound, high=bound, **options)


def kaiming_normal(*shape, a=0.01, **options) -> Tensor:
    """Normally distributed by the number of inputs, for rectifiers of slope `a` below 0 (He et al. 2015)."""
    dims = _dims("kaiming_normal", shape)
    return normal(dims, std=(2 / (1 + a ** 2) / math.prod(dims[1:])) ** 0.5, **options)


def randperm(n, dtype=None, device=None) -> Tensor:
    """0, 1, .. n - 1 in any order, int64; under tinygrad's reading the order of uniform floats, int32, as there."""
    context = default_context()
    if Reading.tinygrad:
        order = _uniform(context, [n], default_float()).argsort()
        return finish(order, Dtype.INT32 if dtype is None else dtype, device)
    return finish(next_key(context, [n], Dtype.INT64).random_permutation(n), dtype, device)


def _rand_like(self, dtype=None, device=None, requires_grad=None, contiguous=True) -> Tensor:
    """rand() of this tensor's shape, and of its dtype if that is a float."""
    drawn = _uniform(self.context, _dims("rand_like", self.shape), _like("rand_like", self, dtype))
    return finish(drawn, None, device, requires_grad)


def _randn_like(self, dtype=None, device=None, requires_grad=None) -> Tensor:
    """randn() of this tensor's shape, and of its dtype if that is a float."""
    drawn = _normal(self.context, _dims("randn_like", self.shape), _like("randn_like", self, dtype))
    return finish(drawn, None, device, requires_grad)


def _like(call, tensor, dtype):
    return _floats(call, dtype if dtype is not None or tensor.dtype not in FLOATS else tensor.dtype)


def _multinomial(self, num_samples=1, replacement=False) -> Tensor:
    """Positions along the last axis, each as likely as its weight's share; int64, and int32 under tinygrad's
    reading."""
    if self.rank not in (1, 2) or num_samples < 1 or not (replacement or num_samples <= self.shape[-1]):
        raise WrongArgument(f"multinomial: {num_samples} positions of weights of shape {list(self.shape)}"
                            + ("" if replacement else " without replacement"))
    weights = self if self.dtype in FLOATS else self.cast(Dtype.FLOAT32)
    if not Reading.tinygrad:
        drawn_as = Dtype.FLOAT32 if replacement else Dtype.FLOAT64
        drawn = [*self.shape[:-1], num_samples] if replacement else self.shape
        return next_key(self.context, drawn, drawn_as).random_multinomial(weights, num_samples, replacement)
    rows = weights if self.rank == 2 else weights.reshape([1, *self.shape])
    if replacement or num_samples == 1:
        sums = rows.cumsum(1).cast(Dtype.FLOAT32)
        shares = sums / sums.slice([0, self.shape[-1] - 1], [rows.shape[0], self.shape[-1]])
        drawn = _uniform(self.context, [num_samples, rows.shape[0], 1], Dtype.FLOAT32)
        places = (drawn >= shares).cast(Dtype.INT32).sum(2).permute([1, 0])
    else:
        times = _uniform(self.context, list(rows.shape), Dtype.FLOAT32).log2() / rows
        places = times.topk(num_samples, dim=1)[1]
    return (places if self.rank == 2 else places.reshape([num_samples])).cast(Dtype.INT32)


_with_key = Tensor.dropout


def _dropout(self, x=None, p=None) -> Tensor:
    """x.dropout(p): while Tensor.training is true each element is 0 with the probability p (0.5 if nothing is said),
    and else over 1 - p.  key.dropout(x, p), of a random key, does so in any case, with this key's numbers."""
    if isinstance(x, Tensor):
        return _with_key(self, x, 0.5 if p is None else p)
    if x is not None and p is not None:
        raise TypeError("dropout: a tensor and a probability are wanted, not two numbers")
    p = next((number for number in (x, p) if number is not None), 0.5)
    want_numbers("dropout", p=p)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is {p}; a probability is wanted")
    if not Tensor.training or p == 0:
        return self
    if p == 1:
        return self.full_like(0)
    drawn_as = default_float() if Reading.tinygrad else Dtype.FLOAT32
    stays = _uniform(self.context, _dims("dropout", self.shape), drawn_as) >= p
    return stays.where(self, 0) / (1 - p)


def _threefry_random_bits(key, counts0, counts1) -> Tensor:
    """The first and then the second words of the key's blocks at counters, whose first and second words these are."""
    return key.random_at(stack([counts0, counts1], 0)).reshape([-1])


class _Counters(dict):
    """Tensor._device_rng_counters, of which programs ask how many words a device has drawn."""

    def __missing__(self, device):
        return source(default_context()).given_counter(default_context())


for _function in (manual_seed, rand, randn, randint, uniform, normal, scaled_uniform, glorot_uniform, kaiming_uniform,
                  kaiming_normal, randperm, _threefry_random_bits):
    setattr(Tensor, _function.__name__, staticmethod(_function))
Tensor.rand_like = _rand_like
Tensor.randn_like = _randn_like
Tensor.multinomial = _multinomial
Tensor.dropout = _dropout
Tensor._device_rng_counters = _Counters()
