"""Tensors made by the class: Tensor([1, 2]), Tensor.zeros(2, 3), Tensor.arange(4)."""

import math

from . import _tape, native
from ._bound import sized
from ._dimension import Dim, is_dimension, number
from ._operands import dtype as dtype_of_name
from ._reading import Reading
from ._tensor import default_context, tensor
from .methods import Dtype
from .native import Tensor, Variable

# What the methods that one gets for granted from a list of numbers need.
FLOATS = (Dtype.FLOAT16, Dtype.BFLOAT16, Dtype.FLOAT32, Dtype.FLOAT64)


def spread(dims):
    """f(2, 3), f((2, 3)) and f(2) name dimensions alike."""
    if len(dims) == 1 and not is_dimension(dims[0]):
        dims = tuple(dims[0])
    return list(dims)


def check_device(device):
    """Tensors of this package are the host's."""
    if device is not None and str(device).partition(":")[0].lower() not in ("cpu", "c", "interp"):
        raise ValueError(f"device {device!r}: tensors are on the CPU; Context(device=..) chooses how kernels run there")


def finish(made, dtype=None, device=None, requires_grad=None):
    """The options that every way to make a tensor has."""
    check_device(device)
    if dtype is not None and dtype_of_name(dtype) != made.dtype:
        made = made.cast(dtype)
    if requires_grad is not None:
        made.requires_grad = requires_grad
    return made


def _of_dimension(value):
    """A scalar that is the dimension in each run of a program."""
    scalar = native.tiny_scalar_int(value.context, number(value))
    scalar.context = value.context
    return scalar.cast(Dtype.INT64)


def _new(self, data=None, device=None, dtype=None, requires_grad=None, context=None):
    """Of a number, nested lists, bytes, or a buffer such as NumPy's arrays, which is copied; None: no elements.
    Floats become float32, integers int64; arrays keep their type."""
    if isinstance(data, Tensor):
        raise TypeError("Tensor(tensor): a tensor is one already; cast() gives it another dtype")
    if isinstance(data, (Dim, Variable)):
        found = _of_dimension(data)
    else:
        found = tensor([] if data is None else data, dtype, context)
        self._is_number = isinstance(data, (bool, int, float))
    made = finish(found, dtype, device)
    self.this = made.this
    self.context = made.context
    self._has_memory = True
    if Reading.tinygrad:
        _tape.note(self)
    if requires_grad is not None:
        self.requires_grad = requires_grad


def full(shape, fill_value, dtype=None, device=None, requires_grad=None, context=None) -> Tensor:
    """Every element `fill_value`: float32 of a float, int64 of an integer, unless `dtype` says otherwise."""
    if dtype is None:
        dtype = (Dtype.BOOL if isinstance(fill_value, bool) else
                 Dtype.INT64 if isinstance(fill_value, int) else Dtype.FLOAT32)
    dims = spread((shape,))
    made = sized((context or default_context()).full(dtype, dims, fill_value), dims)
    return finish(made, None, device, requires_grad)


def zeros(*shape, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Zeros, float32 if nothing else is said."""
    return full(spread(shape), 0.0, dtype, device, requires_grad)


def ones(*shape, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Ones, float32 if nothing else is said."""
    return full(spread(shape), 1.0, dtype, device, requires_grad)


def empty(*shape, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Of any elements: they are zeros."""
    return zeros(*shape, dtype=dtype, device=device, requires_grad=requires_grad)


def arange(start, stop=None, step=1, dtype=None, device=None, requires_grad=None) -> Tensor:
    """start, start + step, .. below stop; with one number from 0 up to it.  int64 if all are integers, else float32."""
    start, stop = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise ValueError("arange: a step of 0 reaches nothing")
    count = max(0, math.ceil((stop - start) / step))
    whole = all(isinstance(number, int) for number in (start, stop, step))
    made = default_context().arange(Dtype.INT64 if whole else Dtype.FLOAT32, count)
    made = made if step == 1 else made * step
    return finish(made if start == 0 else made + start, dtype, device, requires_grad)


def linspace(start, stop, steps, dtype=None, device=None, requires_grad=None) -> Tensor:
    """`steps` numbers from `start` to `stop`, both among them."""
    if steps < 0:
        raise ValueError(f"linspace: {steps} steps")
    made = default_context().arange(Dtype.FLOAT32, steps)
    made = made * ((stop - start) / max(1, steps - 1)) + start
    return finish(made, dtype, device, requires_grad)


def eye(n, m=None, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Ones on the diagonal of n rows and m columns (n if nothing is said)."""
    rows = default_context().arange(Dtype.INT64, n).reshape([n, 1])
    columns = default_context().arange(Dtype.INT64, n if m is None else m)
    return finish((rows == columns).cast(dtype or Dtype.FLOAT32), None, device, requires_grad)


def _full_like(self, fill_value, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Of this tensor's shape, dtype and context."""
    made = self.context.full(self.dtype if dtype is None else dtype, self.shape, fill_value)
    return finish(made, None, device, requires_grad)


def _zeros_like(self, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Zeros of this tensor's shape and dtype."""
    return _full_like(self, 0, dtype, device, requires_grad)


def _ones_like(self, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Ones of this tensor's shape and dtype."""
    return _full_like(self, 1, dtype, device, requires_grad)


Tensor.__init__ = _new
for _function in (full, zeros, ones, empty, arange, linspace, eye):
    setattr(Tensor, _function.__name__, staticmethod(_function))
Tensor.full_like = _full_like
Tensor.zeros_like = _zeros_like
Tensor.ones_like = _ones_like
Tensor.empty_like = _zeros_like
