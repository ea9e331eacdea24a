"""Random tensors by the class: Tensor.rand(2, 3), x.dropout(0.5), after Tensor.manual_seed(1).

The source is a tensor of two words, the seed's and the number of draws, which each draw moves on: a program that
TinyJit captured draws on as its function would.
"""

import math

from . import _tape, native
from ._creation import finish, spread
from ._operands import dtype as dtype_of_name, made
from ._tensor import default_context
from .methods import BinaryOp, Dtype, concat
from .native import Tensor


def _seeded(context, seed):
    word = context.random_key(seed).random_bits(1)
    return concat([word, context.full(Dtype.UINT32, [1], 0)])


def _source(context):
    """The state of the context's random numbers, and what a draw adds to it; begins with seed 0."""
    if not hasattr(context, "_random_source"):
        found = _seeded(context, 0), concat([context.full(Dtype.UINT32, [1], number) for number in (0, 1)])
        native.tiny_realize(found)
        for tensor in found:
            del tensor.context  # which has them, and would not end
        context._random_source = found
    return context._random_source


def _set_state(state, value):
    if _tape.State.capture is not None:
        _tape.State.capture.before_write(state)
    native.tiny_assign(state, value)
    _tape.written(state)


def next_key(context):
    """A key that no other draw has."""
    state, one = _source(context)
    key = made(context, native.tiny_random_bits(state, 2))
    _set_state(state, native.tiny_binary(BinaryOp.ADD, state, one))
    _tape.realize([key, state])
    return key


def manual_seed(seed=0) -> None:
    """The next random numbers are those that come after every call with this seed."""
    if _tape.State.capture is not None:
        raise _tape.JitError("manual_seed() while TinyJit captures: the program would not seed again")
    context = default_context()
    state, _ = _source(context)
    _set_state(state, _seeded(context, seed))
    _tape.realize([state])


def _floats(dtype):
    return Dtype.FLOAT32 if dtype is None else dtype_of_name(dtype)


def rand(*shape, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Uniformly distributed, at least 0 and below 1."""
    drawn = next_key(default_context()).random_uniform(_floats(dtype), spread(shape))
    return finish(drawn, None, device, requires_grad)


def randn(*shape, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Normally distributed, of mean 0 and deviation 1."""
    drawn = next_key(default_context()).random_normal(_floats(dtype), spread(shape))
    return finish(drawn, None, device, requires_grad)


def randint(*shape, low=0, high=10, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Integers from `low` to below `high`, int64 unless `dtype` says otherwise."""
    if not all(hasattr(bound, "__index__") for bound in (low, high)):
        raise TypeError(f"randint: low={low!r} and high={high!r} are to be integers")
    drawn = next_key(default_context()).random_integers(
        Dtype.INT64 if dtype is None else dtype_of_name(dtype), spread(shape), low, high)
    return finish(drawn, None, device, requires_grad)


def uniform(*shape, low=0.0, high=1.0, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Uniformly distributed from `low` to `high`."""
    return finish(rand(*shape, dtype=dtype) * (high - low) + low, None, device, requires_grad)


def normal(*shape, mean=0.0, std=1.0, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Normally distributed with this mean and deviation."""
    return finish(randn(*shape, dtype=dtype) * std + mean, None, device, requires_grad)


def scaled_uniform(*shape, **options) -> Tensor:
    """From -1 to 1 over the root of the number of elements."""
    bound = math.prod(spread(shape)) ** -0.5
    return uniform(*shape, low=-bound, high=bound, **options)


def glorot_uniform(*shape, **options) -> Tensor:
    """Uniformly distributed, as far as the numbers of inputs and outputs say (Glorot and Bengio 2010)."""
    dims = spread(shape)
    bound = (6 / (dims[0] + math.prod(dims[1:]))) ** 0.5
    return uniform(dims, low=-bound, high=bound, **options)


def kaiming_uniform(*shape, a=0.01, **options) -> Tensor:
    """Uniformly distributed by the number of inputs, for rectifiers of slope `a` below 0 (He et al. 2015)."""
    dims = spread(shape)
    bound = (6 / (1 + a ** 2) / math.prod(dims[1:])) ** 0.5
    return uniform(dims, low=-bound, high=bound, **options)


def kaiming_normal(*shape, a=0.01, **options) -> Tensor:
    """Normally distributed by the number of inputs, for rectifiers of slope `a` below 0 (He et al. 2015)."""
    dims = spread(shape)
    return normal(dims, std=(2 / (1 + a ** 2) / math.prod(dims[1:])) ** 0.5, **options)


def randperm(n, dtype=None, device=None) -> Tensor:
    """0, 1, .. n - 1 in any order."""
    return finish(next_key(default_context()).random_permutation(n), dtype, device)


def _rand_like(self, dtype=None) -> Tensor:
    """rand() of this tensor's shape, and of its dtype if that is a float."""
    return next_key(self.context).random_uniform(_like(self, dtype), self.shape)


def _randn_like(self, dtype=None) -> Tensor:
    """randn() of this tensor's shape, and of its dtype if that is a float."""
    return next_key(self.context).random_normal(_like(self, dtype), self.shape)


def _like(tensor, dtype):
    if dtype is not None:
        return dtype_of_name(dtype)
    return tensor.dtype if Dtype.FLOAT16 <= tensor.dtype <= Dtype.FLOAT64 else Dtype.FLOAT32


def _multinomial(self, num_samples=1, replacement=False) -> Tensor:
    """Positions along the last axis, each as likely as its weight's share."""
    return next_key(self.context).random_multinomial(self, num_samples, replacement)


_with_key = Tensor.dropout


def _dropout(self, x=None, p=None) -> Tensor:
    """x.dropout(p): while Tensor.training is true each element is 0 with the probability p (0.5 if nothing is said),
    and else over 1 - p.  key.dropout(x, p), of a random key, does so in any case, with this key's numbers."""
    if isinstance(x, Tensor):
        return _with_key(self, x, 0.5 if p is None else p)
    if x is not None and p is not None:
        raise TypeError("dropout: a tensor and a probability are wanted, not two numbers")
    p = next((number for number in (x, p) if number is not None), 0.5)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is {p}; a probability is wanted")
    return _with_key(next_key(self.context), self, p) if Tensor.training and p > 0 else self


for _function in (manual_seed, rand, randn, randint, uniform, normal, scaled_uniform, glorot_uniform, kaiming_uniform,
                  kaiming_normal, randperm):
    setattr(Tensor, _function.__name__, staticmethod(_function))
Tensor.rand_like = _rand_like
Tensor.randn_like = _randn_like
Tensor.multinomial = _multinomial
Tensor.dropout = _dropout
