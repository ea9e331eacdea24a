"""Tensors made by the class: Tensor([1, 2]), Tensor.zeros(2, 3), Tensor.arange(4)."""

import math
import os

from . import _tape, native
from ._bound import Bound, sized
from ._dimension import Dim, is_dimension, number
from ._disk import OnDisk, is_disk, make, open_path
from ._dtype import default_float, default_int, of as dtype_of, of_python, strong, supported
from ._operands import dtype as dtype_of_name
from ._operands import want_numbers
from ._placing import canonical, context_on, is_one_place
from ._reading import NoSize, Reading, WrongArgument
from ._tensor import default_context, tensor
from .methods import Dtype
from .native import Tensor, Variable

# What the methods that one gets for granted from a list of numbers need.
FLOATS = tuple(kind for kind in supported if kind.is_float)


def spread(dims):
    """f(2, 3), f((2, 3)) and f(2) name dimensions alike."""
    if len(dims) == 1 and not is_dimension(dims[0]) and hasattr(dims[0], "__iter__"):
        dims = tuple(dims[0])
    elif len(dims) > 1 and isinstance(dims[0], (tuple, list)):
        raise WrongArgument(f"a shape is numbers one by one, or one sequence of them, not {dims}")
    for size in dims:
        if size is not None and not is_dimension(size):
            raise NoSize(f"shape must be ints, or dimensions of runs; got {size!r}")
    return list(dims)


def check_device(device):
    """ValueError unless it names a device, or several."""
    for one in device if isinstance(device, (tuple, list)) else (device,):
        if one is not None:
            canonical(one)


def place(device, context=None):
    """The context to make a tensor in that is to be on the device; of several each is the host's."""
    check_device(device)
    return context_on(None if isinstance(device, (tuple, list)) else device, context or default_context())


def finish(made, dtype=None, device=None, requires_grad=None):
    """The options that every way to make a tensor has."""
    if device is not None:
        made = made.to(device)
    if dtype is not None and dtype_of_name(dtype) != made.dtype:
        made = made.cast(dtype)
    if Reading.tinygrad:
        _tape.note(made)
    if requires_grad is not None:
        made.requires_grad = requires_grad
    return made


def tensor_of_node(node):
    """A tensor of a UOp's value."""
    made = node.tensor()
    made.context = node.node.context
    return made


def _of_dimension(value):
    """A scalar that is the dimension in each run of a program."""
    return value.context.full(Dtype.INT64, [], 0) + value


def _new(self, data=None, device=None, dtype=None, requires_grad=None, context=None):
    """Of a number, nested lists, bytes, or a buffer such as NumPy's arrays, which is copied; None: no elements.
    Floats become float32, integers int64; arrays keep their type.  Of a Path: what the file has, see tiny._disk."""
    if dtype is None and device is None and not Reading.tinygrad and _tape.State.capture is None:
        if native.fill(self, context or default_context(), data, default_float(), default_int()):
            self._has_memory = True
            if requires_grad is not None:
                self.requires_grad = requires_grad
            return
    if isinstance(device, (tuple, list)):
        _new(self, data, None, dtype, requires_grad, place(device, context))
        if not is_one_place(self, device):
            self.shard_(device)
        return
    if isinstance(data, os.PathLike):
        _of_file(self, data, device, dtype)
        return
    if device is not None:
        context = place(device, context)
    if isinstance(data, Tensor):
        raise TypeError("Tensor(tensor): a tensor is one already; cast() gives it another dtype")
    if isinstance(data, (Dim, Variable)):
        found = _of_dimension(data)
    elif hasattr(data, "node") and hasattr(data, "toposort"):  # a UOp
        found = tensor_of_node(data)
        self._is_number = not any(node.is_realized for node in data.toposort())  # it has no memory
    else:
        nothing = 0.0 if Reading.tinygrad else []
        if type(data) is Bound and dtype is None and not -1 << 31 <= data < 1 << 31:
            dtype = Dtype.INT64
        found = tensor(nothing if data is None else data, dtype, context)
        self._is_number = isinstance(data, (bool, int, float))
        if Reading.tinygrad and found.dtype.is_float and not self._is_number:
            self._is_fresh = True  # not computed yet, as tinygrad sees it
    made = finish(found, dtype, device)
    self.this = made.this
    self.context = made.context
    self._has_memory = True
    if Reading.tinygrad:
        _tape.note(self)
    if requires_grad is not None:
        self.requires_grad = requires_grad


def _of_file(self, path, device, dtype):
    """Tensor(Path): the bytes of a file, on disk unless another device is said."""
    made = open_path(path, None if dtype is None else dtype_of_name(dtype))
    if device is not None and not is_disk(device):
        made = made.to(device)
    self.this, self.context = made.this, made.context
    self.__dict__.update(made.__dict__)
    if isinstance(made, OnDisk):
        self.__class__ = OnDisk


_EXACT = 1 << 53  # integers up to here are doubles, too


def full(shape, fill_value, dtype=None, device=None, requires_grad=None, context=None, buffer=True) -> Tensor:
    """Every element `fill_value`, a number or a tensor of one: dtypes.default_float of a float, default_int of an integer,
    unless `dtype` says otherwise.  `buffer` changes nothing: what has to be in memory is the schedule's to decide."""
    sizes = spread((shape,))
    context = place(device, context)
    if isinstance(fill_value, Tensor):
        return finish(fill_value.reshape([1] * len(sizes)).expand(sizes).contiguous(), dtype, device, requires_grad)
    fill_value = fill_value.item() if hasattr(fill_value, "item") else fill_value
    kind = strong(of_python(fill_value) if dtype is None else dtype_of(dtype))
    if isinstance(fill_value, int) and abs(fill_value) > _EXACT:
        made = tensor(fill_value, kind, context).reshape([1] * len(sizes)).expand(sizes).contiguous()
    else:
        made = sized(context.full(kind, sizes, fill_value), sizes)
    if Reading.tinygrad and kind.is_float:  # a target of gradients: not one with every equal constant
        made = made.clone()
    return finish(made, None, device, requires_grad)


def zeros(*shape, dtype=None, device=None, requires_grad=None, buffer=True) -> Tensor:
    """Zeros, of dtypes.default_float if nothing else is said."""
    return full(spread(shape), 0.0, dtype, device, requires_grad)


def ones(*shape, dtype=None, device=None, requires_grad=None, buffer=True) -> Tensor:
    """Ones, of dtypes.default_float if nothing else is said."""
    return full(spread(shape), 1.0, dtype, device, requires_grad)


def empty(*shape, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Of any elements: they are zeros.  On "disk:PATH" the first ones of the file, which is made if it is not there."""
    if is_disk(device):
        return make(device, spread(shape), default_float() if dtype is None else dtype_of_name(dtype))
    return zeros(*shape, dtype=dtype, device=device, requires_grad=requires_grad)


def invalids(*shape, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Of elements that nobody reads before they are written: they are zeros."""
    return zeros(*shape, dtype=dtype, device=device, requires_grad=requires_grad)


def _steps(count, kind, device):
    """0, 1, .. count-1 in what a sequence of the dtype is computed in."""
    return place(device).arange(kind if kind.name == "float64" else "float32" if kind.is_float else "int64", count)


def arange(start, stop=None, step=1, dtype=None, device=None, requires_grad=None) -> Tensor:
    """start, start + step, .. below stop; with one number from 0 up to it.  dtypes.default_int if all are integers, else
    default_float."""
    start, stop = (0, start) if stop is None else (start, stop)
    want_numbers("arange", start=start, stop=stop, step=step)
    if step == 0:
        raise ValueError("arange: a step of 0 reaches nothing")
    count = max(0, math.ceil((stop - start) / step))
    whole = not any(isinstance(number, float) for number in (start, stop, step))
    last = start + step * (count - 1) if count else start
    if dtype is None:
        kind = default_int() if whole else default_float()
        if whole and not kind.min <= min(start, last) <= max(start, last) <= kind.max:
            kind = dtype_of("int64")
    else:
        kind = strong(dtype_of(dtype))
    if kind.name != "bool" and not kind.min <= min(start, last) <= max(start, last) <= kind.max:
        raise OverflowError(f"arange: {start} to {last} are out of the range of {kind}, from {kind.min} to {kind.max}")
    made = _steps(count, kind if kind.is_float or whole else dtype_of("float64"), device)
    made = made if step == 1 else made * step
    return finish(made if start == 0 else made + start, kind, device, requires_grad)


def linspace(start, stop, steps, dtype=None, device=None, requires_grad=None) -> Tensor:
    """`steps` numbers from `start` to `stop`, both among them."""
    kind = default_float() if dtype is None else strong(dtype_of(dtype))
    want_numbers("linspace", start=start, stop=stop, steps=steps)
    if steps < 0:
        raise ValueError(f"linspace: the number of steps is {steps}; none is less than 0")
    if kind.name == "bool":
        raise ValueError("linspace: numbers are wanted, not bool")
    made = _steps(steps, kind if kind.is_float else dtype_of("float32"), device)
    made = made * ((stop - start) / max(1, steps - 1)) + start
    return finish(made, kind, device, requires_grad)


def eye(n, m=None, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Ones on the diagonal of n rows and m columns (n if nothing is said)."""
    m = n if m is None else m
    if n < 0 or m < 0:
        raise ValueError(f"eye: {n} rows and {m} columns")
    context = place(device)
    rows = context.arange(Dtype.INT64, n).reshape([n, 1])
    columns = context.arange(Dtype.INT64, m)
    return finish((rows == columns).cast(dtype or default_float()), None, device, requires_grad)


def const(value, dtype=None, device=None) -> Tensor:
    """A number without axes."""
    return finish(tensor(value, dtype, place(device)), None, device)


def _full_like(self, fill_value, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Of this tensor's shape, dtype and context."""
    return full(list(self.shape), fill_value, self.dtype if dtype is None else dtype, device, requires_grad, self.context)


def _zeros_like(self, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Zeros of this tensor's shape and dtype."""
    return _full_like(self, 0, dtype, device, requires_grad)


def _ones_like(self, dtype=None, device=None, requires_grad=None) -> Tensor:
    """Ones of this tensor's shape and dtype."""
    return _full_like(self, 1, dtype, device, requires_grad)


Tensor.__init__ = _new
for _function in (full, zeros, ones, empty, invalids, arange, linspace, eye, const):
    setattr(Tensor, _function.__name__, staticmethod(_function))
Tensor.full_like = _full_like
Tensor.zeros_like = _zeros_like
Tensor.ones_like = _ones_like
Tensor.empty_like = _zeros_like
Tensor.const_like = _full_like
